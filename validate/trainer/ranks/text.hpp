// The text that the trainer learns from: bytes of documents as tokens, cut into sequences that
// depend on the step and on the sequence's place in the batch alone, so that every plan trains on
// the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/plan/plan.hpp"

namespace stepcast::validate {

using Token = std::int32_t;

struct Text {
  std::vector<Token> tokens;  // below vocab
  std::int64_t vocab = 0;
};

/// Bytes of a file as tokens; where the vocabulary is larger than 256, pairs of bytes that occur
/// often are merged into one token each (byte pair encoding), so that the large ids occur as well.
/// Smaller vocabularies take the byte modulo vocab. Throws InputError.
Text read_text(const std::string& path, std::int64_t vocab);

/// The same of a text that is at hand.
Text text_of(const std::string& bytes, std::int64_t vocab);

/// A small English text without a file: sentences drawn from a grammar, always the same for a seed.
std::string generated_text(std::int64_t bytes, std::uint64_t seed = 1);

/// inputs[b * sequence + t] and, one token later, targets.
struct Samples {
  std::vector<Token> inputs, targets;
};

/// What data-parallel rank `data_rank` reads in micro-batch `micro_batch` of step `step`. Sequence
/// i of a step's global batch is the same under every plan; i = (data_rank * micro_batches +
/// micro_batch) * batch.micro_batch + its place in the micro-batch.
Samples samples_of(const Text& text, const workloads::Batch& batch, std::int64_t step,
                   std::int64_t data_rank, std::int64_t micro_batch, std::uint64_t seed = 1);

}  // namespace stepcast::validate
