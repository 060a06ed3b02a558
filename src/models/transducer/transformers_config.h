// The configuration that transformers gives these models when it converts them (config.json and processor_config.json;
// transformers 5.23, models/parakeet, models/nemotron_asr_streaming and models/nemotron3_5_asr, configuration_*.py,
// feature_extraction_*.py and processing_*.py; defaults are those of its classes).
//
// Its classes fix what the maker's leave open: Parakeet is the FastConformer with full attention and batch norm,
// Nemotron the cache-aware one, causal, with LayerNorm and chunks, 3.5 the same with a prompt of languages.
#pragma once

#include "base/yaml_section.h"
#include "models/transducer/config.h"

namespace syrinx::transducer {

// Whether a tree is transformers', and not the maker's.
bool is_transformers_config(const Section& top);

// Errors are in the findings of the sections.  `processor` may be empty.
Config read_transformers_config(Section top, Section processor);

}  // namespace syrinx::transducer
