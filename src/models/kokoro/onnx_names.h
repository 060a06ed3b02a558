// From the names of an exported graph to those of the maker's modules.  Specification: Kokoro, section 6.1.
//
// An exporter keeps the path of the module that ran a node, behind the component of a wrapper, with slashes; where a
// container was called through its parent the path repeats it ("/text_encoder/cnn.0/cnn.0.0"), and where a part was
// called from outside its module the module is missing ("/F0.0/conv1", "/shared").
#pragma once

#include <string>
#include <string_view>

namespace syrinx::kokoro {

// "/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant" -> "text_encoder.cnn.0.0"; empty for a node that no module ran.
std::string module_of_node(std::string_view node_name);

// "encoder.predictor.F0_proj.bias" -> "predictor.F0_proj.bias"; empty for a name that is no module's.
std::string parameter_name(std::string_view initialiser_name);

}  // namespace syrinx::kokoro
