// Words of the stacks around Hugging Face's Trainer, a table each. Meanings of Use::read are
// those of trainer_facts.cpp.
#pragma once

#include "sim/launch/words.hpp"

namespace stepcast::sim {

LaunchWords trainer_words();           // transformers' TrainingArguments, TRL's configurations
LaunchWords accelerate_words();        // accelerate config's YAML
LaunchWords llama_factory_words();     // LLaMA-Factory's YAML
LaunchWords llama_factory_v1_words();  // its second generation: USE_V1=1
LaunchWords axolotl_words();           // Axolotl's YAML
LaunchWords swift_words();             // ms-swift's arguments
LaunchWords deepspeed_words();         // DeepSpeed's JSON
LaunchWords deepspeed_chat_words();    // arguments of DeepSpeed-Chat's steps

}  // namespace stepcast::sim
