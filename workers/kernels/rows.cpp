// Products of one vector with a matrix stored [inputs, outputs] that read the rows of active inputs only, and the choice of these.
//
// Called through ctypes by workers/kernels/rows.py. Pointers are to contiguous memory; sums are formed in float32.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t BLOCK = 8192;          // columns whose sums stay in the first-level cache (32 KiB)
constexpr int64_t SERIAL = 1 << 15;      // multiplications below which waking a second thread costs more than it saves
constexpr int64_t BINS = 1 << 11;        // of a histogram over sign-less exponents and the first three bits of the fractions
constexpr int BIN_SHIFT = 20;

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

inline void narrow(float value, BFloat16& out) {  // to nearest, ties to even; what is not a number stays so
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const bool nan = value != value;
    out.bits = nan ? 0x7fc0 : static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The bits of |value|: they have the order of the values, and what is not a number comes last.
inline uint32_t magnitude(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffffu;
}

// sum[c] += value[j] * weight[index[j], c] for c in [0, width).
template <typename W>
void add_rows(const float* value, const int32_t* index, int64_t count, const W* weight, int64_t outputs, int64_t width,
              float* __restrict sum) {
    const auto row = [=](int64_t j) { return weight + (index ? static_cast<int64_t>(index[j]) : j) * outputs; };
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
        const W *r0 = row(j), *r1 = row(j + 1), *r2 = row(j + 2), *r3 = row(j + 3);
        const W *r4 = row(j + 4), *r5 = row(j + 5), *r6 = row(j + 6), *r7 = row(j + 7);
        const float v0 = value[j], v1 = value[j + 1], v2 = value[j + 2], v3 = value[j + 3];
        const float v4 = value[j + 4], v5 = value[j + 5], v6 = value[j + 6], v7 = value[j + 7];
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
            sum[c] += (v0 * widen(r0[c]) + v1 * widen(r1[c])) + (v2 * widen(r2[c]) + v3 * widen(r3[c])) +
                      ((v4 * widen(r4[c]) + v5 * widen(r5[c])) + (v6 * widen(r6[c]) + v7 * widen(r7[c])));
        }
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

// The magnitude of the kept-th largest of n values; `ties` gets how many of that very magnitude belong to the kept ones.
template <typename W>
uint32_t limit(const W* x, int64_t n, int64_t kept, std::vector<uint32_t>& few, int64_t& ties) {
    int32_t histogram[BINS] = {};
    for (int64_t i = 0; i < n; ++i) ++histogram[magnitude(widen(x[i])) >> BIN_SHIFT];
    int64_t bin = BINS - 1, before = 0;
    while (before + histogram[bin] < kept) before += histogram[bin--];
    few.clear();
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t bits = magnitude(widen(x[i]));
        if (bits >> BIN_SHIFT == static_cast<uint32_t>(bin)) few.push_back(bits);
    }
    const auto nth = few.begin() + (kept - before - 1);
    std::nth_element(few.begin(), nth, few.end(), [](uint32_t a, uint32_t b) { return a > b; });
    const uint32_t found = *nth;
    ties = kept - before - std::count_if(few.begin(), few.end(), [found](uint32_t bits) { return bits > found; });
    return found;
}

// The `kept` values of largest magnitude, equal ones by place, in the order of their places.
template <typename W>
void select_largest(const W* x, int64_t n, int64_t kept, int32_t* index, float* value) {
    std::vector<uint32_t> few;
    int64_t ties = 0, found = 0;
    const uint32_t least = limit(x, n, kept, few, ties);
    for (int64_t i = 0; i < n; ++i) {
        const float wide = widen(x[i]);
        const uint32_t bits = magnitude(wide);
        if (bits > least || (bits == least && ties-- > 0)) {
            index[found] = static_cast<int32_t>(i);
            value[found++] = wide;
        }
    }
}

template <typename W>
int64_t select_above(const W* x, int64_t n, float threshold, int32_t* index, float* value) {
    int64_t found = 0;
    const uint32_t least = magnitude(threshold);
    for (int64_t i = 0; i < n; ++i) {
        const float wide = widen(x[i]);
        if (magnitude(wide) > least) {
            index[found] = static_cast<int32_t>(i);
            value[found++] = wide;
        }
    }
    return found;
}

// y = x with all but the `kept` values of largest magnitude of each row set to zero.
template <typename W>
void mask_largest(const W* x, int64_t rows, int64_t n, int64_t kept, W* y, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1 && rows * n > SERIAL)
    {
        std::vector<uint32_t> few;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; ++row) {
            const W* from = x + row * n;
            W* to = y + row * n;
            int64_t ties = 0;
            const uint32_t least = limit(from, n, kept, few, ties);
            for (int64_t i = 0; i < n; ++i) {
                const uint32_t bits = magnitude(widen(from[i]));
                to[i] = bits > least || (bits == least && ties-- > 0) ? from[i] : W{};
            }
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
    extern "C" void mask_largest_##SUFFIX(const W* x, int64_t rows, int64_t n, int64_t kept, W* y, int threads) {                  \
        mask_largest(x, rows, n, kept, y, threads);                                                                                \
    }

EXPORT(float, f32)
EXPORT(BFloat16, bf16)
