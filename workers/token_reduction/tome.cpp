// Bipartite soft matching and merging of tokens in one call on a CPU: what token_ops.py does in some twenty operators.
// Farthest-first selection and merging of groups: what hquota_ops.py does in three steps for each token.
//
// Called through ctypes by workers/token_reduction/tome_cpp.py. Rows of tokens and keys are contiguous float32.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr int64_t COLUMNS = 32;  // similarities of one row that are formed at once, in registers
constexpr int64_t ALONE = 1 << 17;  // below this many products a second thread does not pay
constexpr int64_t LANES = 16;    // those of a last, narrow piece
constexpr int64_t ROWS = 4;      // rows of set A that read the same columns of set B

struct Shape {
    int64_t batch, tokens, channels, heads, head_dim, prefix, merged;
    int64_t first_a() const { return prefix + prefix % 2; }
    int64_t first_b() const { return prefix + 1 - prefix % 2; }
    int64_t count_a() const { return tokens > first_a() ? (tokens - first_a() + 1) / 2 : 0; }
    int64_t count_b() const { return tokens > first_b() ? (tokens - first_b() + 1) / 2 : 0; }
    int64_t padded_a() const { return (count_a() + ROWS - 1) / ROWS * ROWS; }
    int64_t padded_b() const { return (count_b() + COLUMNS - 1) / COLUMNS * COLUMNS; }
    int64_t left() const { return tokens - merged; }
};

// The sum of a token's keys over the heads.
inline void sum_heads(const float* key, int64_t head_stride, const Shape& s, float* __restrict sum) {
    std::copy(key, key + s.head_dim, sum);
    for (int64_t h = 1; h < s.heads; ++h)
        for (int64_t c = 0; c < s.head_dim; ++c) sum[c] += key[h * head_stride + c];
}

// One over the length of a vector.
inline float inverse_length(const float* sum, int64_t depth) {
    float square = 0.0f;
#pragma omp simd reduction(+ : square)
    for (int64_t c = 0; c < depth; ++c) square += sum[c] * sum[c];
    return 1.0f / std::sqrt(square);
}

// LANES tokens of B, scaled to length 1 and transposed: column `first` and those behind it of `to`, [head_dim, width].
void direct_b(const float* key, int64_t token_stride, int64_t head_stride, const Shape& s, int64_t count, float* to) {
    const int64_t width = s.padded_b();
    float sums[LANES][1024];  // no head is wider; see tome_cpp.py
    for (int64_t i = 0; i < count; ++i) {
        sum_heads(key + 2 * i * token_stride, head_stride, s, sums[i]);
        const float scale = inverse_length(sums[i], s.head_dim);
        for (int64_t c = 0; c < s.head_dim; ++c) sums[i][c] *= scale;
    }
    for (int64_t c = 0; c < s.head_dim; ++c)
        for (int64_t i = 0; i < count; ++i) to[c * width + i] = sums[i][c];
}

// For ROWS unit vectors of A the most similar of WIDE unit vectors of B from column `start` on; of equals the first.
template <int64_t WIDE>
inline void nearest_of(const float* a, const float* b, const Shape& s, int64_t start, float* best, int64_t* place) {
    const int64_t width = s.padded_b(), end = std::min(WIDE, s.count_b() - start), depth = s.head_dim;
    float sum[ROWS][WIDE] = {};
    for (int64_t c = 0; c < depth; ++c) {
        const float* const row = b + c * width + start;
        for (int64_t i = 0; i < ROWS; ++i)
            for (int64_t j = 0; j < WIDE; ++j) sum[i][j] += a[i * depth + c] * row[j];
    }
    for (int64_t i = 0; i < ROWS; ++i) {
        for (int64_t j = end; j < WIDE; ++j) sum[i][j] = -std::numeric_limits<float>::infinity();
        float most = best[i];
#pragma omp simd reduction(max : most)
        for (int64_t j = 0; j < WIDE; ++j) most = std::max(most, sum[i][j]);
        if (!(most > best[i])) continue;
        best[i] = most;
        place[i] = start + (std::find(sum[i], sum[i] + end, most) - sum[i]);
    }
}

// For ROWS unit vectors of A the most similar one of B: `b` has shape [head_dim, padded_b].
void nearest(const float* a, const float* b, const Shape& s, float* best, int64_t* place) {
    std::fill(best, best + ROWS, -std::numeric_limits<float>::infinity());
    std::fill(place, place + ROWS, 0);
    int64_t start = 0;
    for (; s.count_b() - start > LANES; start += COLUMNS) nearest_of<COLUMNS>(a, b, s, start, best, place);
    if (start < s.count_b()) nearest_of<LANES>(a, b, s, start, best, place);
}

}  // namespace

extern "C" void merge_similar(const float* x, const float* key, int64_t key_batch, int64_t key_head, int64_t key_token,
                              const float* size, float* out, float* out_size, int64_t* from, int64_t batch, int64_t tokens,
                              int64_t channels, int64_t heads, int64_t head_dim, int64_t prefix, int64_t merged, int threads) {
    const Shape s{batch, tokens, channels, heads, head_dim, prefix, merged};
    const int64_t A = s.count_a(), B = s.count_b(), pieces = (B + LANES - 1) / LANES, height = s.padded_a(), width = s.padded_b(), left = s.left();
    static thread_local std::vector<float> numbers;
    static thread_local std::vector<int64_t> places;
    // Values behind the last token of a set are computed with and discarded; rows do not depend on each other.
    numbers.resize(static_cast<size_t>(batch * ((height + width) * head_dim + height)));
    places.resize(static_cast<size_t>(batch * (height + A + B + A)));
    float* const unit_a = numbers.data();
    float* const unit_b = unit_a + batch * height * head_dim;
    float* const best = unit_b + batch * width * head_dim;
    int64_t* const taker = places.data();           // [batch, height]: the token of B nearest to each of A
    int64_t* const order = taker + batch * height;  // [batch, A]: those merged away first, then those that stay, ascending
    int64_t* const head = order + batch * A;        // [batch, B]: the first token merged into each, or -1
    int64_t* const next = head + batch * B;         // [batch, A]: the next one merged into the same

    if (batch * A * B * head_dim < ALONE) threads = 1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < batch * A; ++row) {
            const int64_t image = row / A, place = row % A;
            float* const to = unit_a + (image * height + place) * head_dim;
            sum_heads(key + image * key_batch + (s.first_a() + 2 * place) * key_token, key_head, s, to);
            const float scale = inverse_length(to, head_dim);
            for (int64_t c = 0; c < head_dim; ++c) to[c] *= scale;
        }
#pragma omp for schedule(static)
        for (int64_t piece = 0; piece < batch * pieces; ++piece) {
            const int64_t image = piece / pieces, first = piece % pieces * LANES;
            const float* const from = key + image * key_batch + (s.first_b() + 2 * first) * key_token;
            direct_b(from, key_token, key_head, s, std::min(LANES, B - first), unit_b + image * width * head_dim + first);
        }
#pragma omp for schedule(static)
        for (int64_t at = 0; at < batch * height; at += ROWS)
            nearest(unit_a + at * head_dim, unit_b + at / height * width * head_dim, s, best + at, taker + at);
#pragma omp for schedule(static)
        for (int64_t image = 0; image < batch; ++image) {
            const float* const score = best + image * height;
            int64_t* const own = order + image * A;
            for (int64_t i = 0; i < A; ++i) own[i] = i;
            const auto before = [score](int64_t i, int64_t j) { return score[i] != score[j] ? score[i] > score[j] : i < j; };
            if (0 < merged && merged < A) std::nth_element(own, own + merged, own + A, before);
            std::sort(own, own + merged);
            std::sort(own + merged, own + A);
            std::fill(head + image * B, head + (image + 1) * B, -1);
            for (int64_t i = merged - 1; i >= 0; --i) {
                const int64_t token = own[i], into = image * B + taker[image * height + token];
                next[image * A + token] = head[into];
                head[into] = token;
            }
        }
#pragma omp for schedule(static)
        for (int64_t row = 0; row < batch * left; ++row) {
            const int64_t image = row / left, place = row % left, stay = prefix + A - merged;
            const float* const rows_in = x + image * tokens * channels;
            const float* const sizes = size ? size + image * tokens : nullptr;
            float* __restrict to = out + row * channels;
            int64_t token = place;
            if (place >= stay) token = s.first_b() + 2 * (place - stay);
            else if (place >= prefix) token = s.first_a() + 2 * order[image * A + merged + place - prefix];
            const float* const own = rows_in + token * channels;
            float total = sizes ? sizes[token] : 1.0f;
            int64_t part = place >= stay ? head[image * B + place - stay] : -1;
            if (part < 0) {
                std::copy(own, own + channels, to);
            } else {
                for (int64_t c = 0; c < channels; ++c) to[c] = own[c] * total;
                for (; part >= 0; part = next[image * A + part]) {
                    const int64_t other = s.first_a() + 2 * part;
                    const float weight = sizes ? sizes[other] : 1.0f;
                    const float* const row_in = rows_in + other * channels;
                    for (int64_t c = 0; c < channels; ++c) to[c] += row_in[c] * weight;
                    total += weight;
                }
                for (int64_t c = 0; c < channels; ++c) to[c] /= total;
            }
            out_size[row] = total;
            if (from) from[row] = token;  // the token that others were merged into
        }
    }
}

// Indices of all tokens, [batch, tokens]: `hubs` tokens given in `first`, then farthest first up to `kept`, then the others ascending.
// Each next token has the least greatest similarity to those chosen, of equals the first. The diagonal of `similarity` is infinite.
extern "C" void farthest_first(const float* similarity, const int64_t* first, int64_t* order, int64_t batch, int64_t tokens,
                               int64_t hubs, int64_t kept, int threads) {
    if (batch * kept * tokens < ALONE) threads = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t image = 0; image < batch; ++image) {
        std::vector<float> row_of_nearest(static_cast<size_t>(tokens), -std::numeric_limits<float>::infinity());
        float* __restrict nearest = row_of_nearest.data();
        int64_t* const own = order + image * tokens;
        for (int64_t step = 0; step < kept; ++step) {
            int64_t chosen = 0;
            if (step < hubs) {
                chosen = first[image * hubs + step];
            } else {
                float least = std::numeric_limits<float>::infinity();
#pragma omp simd reduction(min : least)
                for (int64_t i = 0; i < tokens; ++i) least = std::min(least, nearest[i]);
                chosen = std::min<int64_t>(std::find(nearest, nearest + tokens, least) - nearest, tokens - 1);
            }
            own[step] = chosen;
            const float* const row = similarity + (image * tokens + chosen) * tokens;
            for (int64_t i = 0; i < tokens; ++i) nearest[i] = std::max(nearest[i], row[i]);
        }
        // Two passes, so that the row is full even where tokens are not numbers.
        int64_t place = kept;
        for (const bool taken : {false, true})
            for (int64_t i = 0; i < tokens && place < tokens; ++i)
                if (std::isinf(nearest[i]) == taken) own[place++] = i;
    }
}

// Groups as means weighted by size: `order` has shape [batch, tokens], of which the last `merged` go into the tokens `target` of those
// that are left behind the prefix tokens.
extern "C" void merge_groups(const float* x, const float* size, const int64_t* order, const int64_t* target, float* out,
                             float* out_size, int64_t batch, int64_t tokens, int64_t channels, int64_t prefix, int64_t merged,
                             int threads) {
    const int64_t left = tokens - merged;
    if (batch * tokens * channels < ALONE) threads = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t image = 0; image < batch; ++image) {
        const int64_t* const from = order + image * tokens;
        const int64_t* const into = target + image * merged;
        std::vector<char> taker(static_cast<size_t>(left), 0);
        for (int64_t i = 0; i < merged; ++i) taker[static_cast<size_t>(prefix + into[i])] = 1;
        for (int64_t i = 0; i < tokens; ++i) {
            const int64_t row = i < left ? i : prefix + into[i - left];
            const float weight = size ? size[image * tokens + from[i]] : 1.0f;
            const float* const token = x + (image * tokens + from[i]) * channels;
            float* __restrict to = out + (image * left + row) * channels;
            float& total = out_size[image * left + row];
            if (i >= left) {
                for (int64_t c = 0; c < channels; ++c) to[c] += token[c] * weight;
                total += weight;
                continue;
            }
            total = weight;
            if (!taker[static_cast<size_t>(row)]) std::copy(token, token + channels, to);
            else for (int64_t c = 0; c < channels; ++c) to[c] = token[c] * weight;
        }
        for (int64_t row = 0; row < left; ++row) {
            if (!taker[static_cast<size_t>(row)]) continue;
            float* const to = out + (image * left + row) * channels;
            const float total = out_size[image * left + row];
            for (int64_t c = 0; c < channels; ++c) to[c] /= total;
        }
    }
}
