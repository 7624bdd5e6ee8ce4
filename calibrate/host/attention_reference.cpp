#include <cmath>

#include "calibrate/host/reference.hpp"

namespace stepcast::calibrate::host {
namespace {

/// One head of one sequence: where its rows lie, and its matrix of probabilities (S, S).
class ReferenceHead {
 public:
  ReferenceHead(const AttentionSizes& sizes, std::int64_t b, std::int64_t a)
      : s_(sizes), b_(b), a_(a) {}

  std::size_t q(std::int64_t i, std::int64_t d) const {
    return static_cast<std::size_t>(((b_ * s_.sequence + i) * s_.heads + a_) * s_.head_dim + d);
  }
  std::size_t kv(std::int64_t j, std::int64_t d) const {
    const std::int64_t group = a_ / (s_.heads / s_.kv_heads);
    return static_cast<std::size_t>(((b_ * s_.sequence + j) * s_.kv_heads + group) * s_.head_dim +
                                    d);
  }
  std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(i * s_.sequence + j);
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(s_.head_dim)); }

  Doubles probabilities(const Doubles& query, const Doubles& key) const {
    Doubles p(static_cast<std::size_t>(s_.sequence * s_.sequence));
    for (std::int64_t i = 0; i < s_.sequence; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < s_.sequence; ++j) {
        if (s_.causal && j > i) continue;
        double score = 0;
        for (std::int64_t d = 0; d < s_.head_dim; ++d) score += query[q(i, d)] * key[kv(j, d)];
        p[at(i, j)] = std::exp(score * scale());
        sum += p[at(i, j)];
      }
      for (std::int64_t j = 0; j < s_.sequence; ++j) p[at(i, j)] /= sum;
    }
    return p;
  }

 private:
  const AttentionSizes& s_;
  std::int64_t b_, a_;
};

}  // namespace

Doubles reference_attention(const Doubles& q, const Doubles& k, const Doubles& v,
                            const AttentionSizes& s) {
  Doubles o(q.size());
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t a = 0; a < s.heads; ++a) {
      const ReferenceHead head(s, b, a);
      const Doubles p = head.probabilities(q, k);
      for (std::int64_t i = 0; i < s.sequence; ++i)
        for (std::int64_t j = 0; j < s.sequence; ++j)
          for (std::int64_t d = 0; d < s.head_dim; ++d)
            o[head.q(i, d)] += p[head.at(i, j)] * v[head.kv(j, d)];
    }
  return o;
}

// dP = do v^T; through the softmax dS_ij = P_ij (dP_ij - sum_j P_ij dP_ij).
AttentionGradients reference_attention_backward(const Doubles& dout, const Doubles& q,
                                                const Doubles& k, const Doubles& v,
                                                const AttentionSizes& s) {
  AttentionGradients g{Doubles(q.size()), Doubles(k.size()), Doubles(v.size())};
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t a = 0; a < s.heads; ++a) {
      const ReferenceHead head(s, b, a);
      const Doubles p = head.probabilities(q, k);
      for (std::int64_t i = 0; i < s.sequence; ++i) {
        Doubles dp(static_cast<std::size_t>(s.sequence));
        double mean = 0;
        for (std::int64_t j = 0; j < s.sequence; ++j) {
          double& slope = dp[static_cast<std::size_t>(j)];
          for (std::int64_t d = 0; d < s.head_dim; ++d)
            slope += dout[head.q(i, d)] * v[head.kv(j, d)];
          mean += p[head.at(i, j)] * slope;
        }
        for (std::int64_t j = 0; j < s.sequence; ++j) {
          const double probability = p[head.at(i, j)];
          const double ds = probability * (dp[static_cast<std::size_t>(j)] - mean) * head.scale();
          for (std::int64_t d = 0; d < s.head_dim; ++d) {
            g.dv[head.kv(j, d)] += probability * dout[head.q(i, d)];
            g.dq[head.q(i, d)] += ds * k[head.kv(j, d)];
            g.dk[head.kv(j, d)] += ds * q[head.q(i, d)];
          }
        }
      }
    }
  return g;
}

}  // namespace stepcast::calibrate::host
