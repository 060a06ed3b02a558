// The languages that a model may be told, as the maker's configuration and transformers' name them: a mapping
// `prompt_dictionary` of names to rows of the prompt.
#pragma once

#include "base/yaml_section.h"
#include "models/transducer/config.h"

namespace syrinx::transducer {

// Into prompt.languages; prompt.count, above 0, bounds the rows.  What is wrong shows in the section's findings.
void read_languages(Section& section, PromptConfig& prompt);

}  // namespace syrinx::transducer
