// Words of the stacks around Hugging Face's Trainer, a table each. Meanings of Use::read are those
// of trainer_facts.cpp.
#pragma once

#include "sim/launch/words.hpp"

namespace stepcast::sim {

Words trainer_words();        // transformers' TrainingArguments, TRL's configurations
Words accelerate_words();     // accelerate config's YAML
Words llama_factory_words();  // LLaMA-Factory's YAML
Words axolotl_words();        // Axolotl's YAML
Words swift_words();          // ms-swift's arguments
Words deepspeed_words();      // DeepSpeed's JSON

}  // namespace stepcast::sim
