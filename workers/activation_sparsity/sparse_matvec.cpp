// Products of one vector with a matrix stored [inputs, outputs] that read the rows of active inputs only, and the choice of these.
//
// Called through ctypes by workers/activation_sparsity/sparse_matvec.py. Pointers are to contiguous memory; sums are formed in float32.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t BLOCK = 8192;          // columns whose sums stay in the first-level cache (32 KiB)
constexpr int64_t SERIAL = 1 << 15;      // multiplications below which waking a second thread costs more than it saves

struct BFloat16 {
    uint16_t bits;
};

inline float widen(float value) { return value; }

inline float widen(BFloat16 value) {
    const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
    float wide;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
}

inline void narrow(float value, float& out) { out = value; }

inline void narrow(float value, BFloat16& out) {  // to nearest, ties to even; NaN stays NaN
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const bool nan = value != value;
    out.bits = nan ? 0x7fc0 : static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The bits of |value|: they have the order of the values. NaN of any payload ranks as infinity, as in `_among_largest` of sparse_matvec.py.
inline int32_t magnitude(float value) {
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return std::min(bits & 0x7fffffff, 0x7f800000);
}

// The next eight rows are fetched meanwhile: rows are active in no order that the processor could foresee, and without that it reads two
// thirds as fast.
//
// sum[c] += value[j] * weight[index[j], c] for c in [0, width).
template <typename W>
void add_rows(const float* value, const int32_t* index, int64_t count, const W* weight, int64_t outputs, int64_t width,
              float* __restrict sum) {
    const auto row = [=](int64_t j) { return weight + (index ? static_cast<int64_t>(index[j]) : j) * outputs; };
    constexpr int64_t LINE = 64 / sizeof(W);  // columns of a cache line
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
        const W *r0 = row(j), *r1 = row(j + 1), *r2 = row(j + 2), *r3 = row(j + 3);
        const W *r4 = row(j + 4), *r5 = row(j + 5), *r6 = row(j + 6), *r7 = row(j + 7);
        const float v0 = value[j], v1 = value[j + 1], v2 = value[j + 2], v3 = value[j + 3];
        const float v4 = value[j + 4], v5 = value[j + 5], v6 = value[j + 6], v7 = value[j + 7];
        const auto add = [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t c = begin; c < end; ++c) {
                sum[c] += (v0 * widen(r0[c]) + v1 * widen(r1[c])) + (v2 * widen(r2[c]) + v3 * widen(r3[c])) +
                          ((v4 * widen(r4[c]) + v5 * widen(r5[c])) + (v6 * widen(r6[c]) + v7 * widen(r7[c])));
            }
        };
        const W* next[8];
        for (int64_t i = 0; i < 8; ++i) next[i] = row(std::min(j + 8 + i, count - 1));
        int64_t c = 0;
        for (; c + LINE <= width; c += LINE) {
            for (const W* ahead : next) __builtin_prefetch(ahead + c);
            add(c, c + LINE);
        }
        add(c, width);
    }
    for (; j < count; ++j) {
        const W* r = row(j);
        const float v = value[j];
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) sum[c] += v * widen(r[c]);
    }
}

template <typename W>
void multiply(const float* value, const int32_t* index, int64_t count, const W* weight, const W* bias, int64_t outputs, W* y,
              int threads) {
    const int parts = count * outputs < SERIAL ? 1 : std::max(threads, 1);
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; ++part) {
        float sum[BLOCK];
        const int64_t begin = outputs * part / parts / 32 * 32;
        const int64_t end = part + 1 == parts ? outputs : outputs * (part + 1) / parts / 32 * 32;
        for (int64_t c = begin; c < end; c += BLOCK) {
            const int64_t width = std::min(BLOCK, end - c);
            for (int64_t i = 0; i < width; ++i) sum[i] = bias ? widen(bias[c + i]) : 0.0f;
            add_rows(value, index, count, weight + c, outputs, width, sum);
            for (int64_t i = 0; i < width; ++i) narrow(sum[i], y[c + i]);
        }
    }
}

// The magnitude of the kept-th largest of n values; `bits` gets all magnitudes, `ties` how many of that very one are among the kept.
//
// Bit by bit from the highest, counting the values that are at least so large: 31 passes without a branch, of 16 values a step; each
// increment of a histogram would wait for the one before.
template <typename W>
int32_t limit(const W* x, int64_t n, int64_t kept, std::vector<int32_t>& bits, int64_t& ties) {
    bits.resize(n);
    int32_t* const all = bits.data();
    for (int64_t i = 0; i < n; ++i) all[i] = magnitude(widen(x[i]));
    ties = 0;
    if (kept <= 0) return INT32_MAX;  // no magnitude is as large
    const auto at_least = [=](int32_t value) {
        int32_t count = 0;
#pragma omp simd reduction(+ : count)
        for (int64_t i = 0; i < n; ++i) count += all[i] >= value;
        return count;
    };
    int32_t found = 0;
    for (int32_t bit = 1 << 30; bit; bit >>= 1)
        if (at_least(found | bit) >= kept) found |= bit;
    ties = kept - at_least(found + 1);  // no overflow: no magnitude exceeds infinity's bits, so `found` does not
    return found;
}

// The `kept` values of largest magnitude, equal ones by place, in the order of their places.
template <typename W>
void select_largest(const W* x, int64_t n, int64_t kept, int32_t* index, float* value) {
    thread_local std::vector<int32_t> bits;
    int64_t ties = 0, found = 0;
    const int32_t least = limit(x, n, kept, bits, ties);
    // Every index is written, and counted only where it is kept: a branch on values would often be mispredicted.
    for (int64_t i = 0; found < kept; ++i) {
        const bool tied = (bits[i] == least) & (ties > 0);
        index[found] = static_cast<int32_t>(i);
        found += (bits[i] > least) | tied;
        ties -= tied;
    }
    for (int64_t j = 0; j < kept; ++j) value[j] = widen(x[index[j]]);
}

template <typename W>
int64_t select_above(const W* x, int64_t n, float threshold, int32_t* index, float* value) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) {
        const float wide = widen(x[i]);
        if (!(std::fabs(wide) <= threshold)) {  // true for NaN, as in torch
            index[found] = static_cast<int32_t>(i);
            value[found++] = wide;
        }
    }
    return found;
}

// Chooses the inputs (the `kept` largest, or all where there are no more, or, with a negative `kept`, those above the threshold;
// with `norms` by their products with these) and multiplies them with every matrix that reads them; the products lie in y one behind the other. Returns how many were chosen.
template <typename W>
int64_t multiply_all(const W* x, const float* norms, int64_t n, int64_t kept, float threshold, int64_t matrices,
                     const W* const* weights, const W* const* biases, const int64_t* outputs, W* y, int threads) {
    thread_local std::vector<int32_t> places;
    thread_local std::vector<float> values;
    places.resize(n);
    values.resize(n);
    int64_t count = n;
    const auto select = [&](const auto* scores) {
        if (kept < 0) return select_above(scores, n, threshold, places.data(), values.data());
        select_largest(scores, n, kept, places.data(), values.data());
        return kept;
    };
    if (kept < n && norms) {
        thread_local std::vector<float> scores;
        scores.resize(n);
        for (int64_t i = 0; i < n; ++i) scores[i] = widen(x[i]) * norms[i];
        count = select(scores.data());
        for (int64_t j = 0; j < count; ++j) values[j] = widen(x[places[j]]);
    } else if (kept < n) {
        count = select(x);
    } else {
        for (int64_t i = 0; i < n; ++i) values[i] = widen(x[i]);
    }
    const int32_t* index = kept >= n ? nullptr : places.data();
    const float* value = values.data();
    for (int64_t m = 0; m < matrices; ++m) {
        multiply(value, index, count, weights[m], biases[m], outputs[m], y, threads);
        y += outputs[m];
    }
    return count;
}

// y = x with all but the `kept` values of largest magnitude of each row set to zero.
template <typename W>
void mask_largest(const W* x, int64_t rows, int64_t n, int64_t kept, W* y, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1 && rows * n > SERIAL)
    {
        std::vector<int32_t> all;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; ++row) {
            const W* from = x + row * n;
            W* to = y + row * n;
            int64_t ties = 0;
            const int32_t least = limit(from, n, kept, all, ties);
            for (int64_t i = 0; i < n; ++i) to[i] = all[i] > least || (all[i] == least && ties-- > 0) ? from[i] : W{};
        }
    }
}

}  // namespace

#define EXPORT(W, SUFFIX)                                                                                                          \
    extern "C" void multiply_##SUFFIX(const float* value, const int32_t* index, int64_t count, const W* weight, const W* bias,     \
                                      int64_t outputs, W* y, int threads) {                                                        \
        multiply(value, index, count, weight, bias, outputs, y, threads);                                                          \
    }                                                                                                                              \
    extern "C" void select_largest_##SUFFIX(const W* x, int64_t n, int64_t kept, int32_t* index, float* value) {                   \
        select_largest(x, n, kept, index, value);                                                                                  \
    }                                                                                                                              \
    extern "C" int64_t select_above_##SUFFIX(const W* x, int64_t n, float threshold, int32_t* index, float* value) {               \
        return select_above(x, n, threshold, index, value);                                                                        \
    }                                                                                                                              \
    extern "C" int64_t multiply_all_##SUFFIX(const W* x, const float* norms, int64_t n, int64_t kept, float threshold,             \
                                             int64_t matrices, const W* const* weights, const W* const* biases,                    \
                                             const int64_t* outputs, W* y, int threads) {                                          \
        return multiply_all(x, norms, n, kept, threshold, matrices, weights, biases, outputs, y, threads);                                \
    }                                                                                                                              \
    extern "C" void mask_largest_##SUFFIX(const W* x, int64_t rows, int64_t n, int64_t kept, W* y, int threads) {                  \
        mask_largest(x, rows, n, kept, y, threads);                                                                                \
    }

EXPORT(float, f32)
EXPORT(BFloat16, bf16)
