#include "decoding_fixture.h"

#include "base/check.h"
#include "models/transducer/checkpoint.h"
#include "seen_stages.h"

namespace syrinx::transducer {
namespace {

template <class T>
T value_of(Result<T> result) {
  SYRINX_CHECK(result.has_value(), "{}", result.error().message);
  return std::move(*result);
}

}  // namespace

DecodingCase::DecodingCase(const std::string& name, const DecodingOptions& options) {
  const std::string folder = std::string(SYRINX_TEST_DATA) + "/transducer/decoding/" + name;
  file_ = std::make_unique<MappedFile>(value_of(MappedFile::open(folder + "/reference.safetensors")));
  arrays_ = std::make_unique<Safetensors>(value_of(Safetensors::parse(file_->bytes(), name)));
  frames_ = floats("frames");
  const Checkpoint checkpoint = value_of(Checkpoint::open(folder));
  WeightReader reader(checkpoint, options.precision);
  auto weights = std::make_shared<DecoderWeights>(read_decoder(reader, checkpoint.config(), options.max_table_bytes));
  const Status status = reader.finish();
  SYRINX_CHECK(status.has_value(), "{}", status.error().message);
  weights->config.max_symbols = options.max_symbols;
  weights_ = std::move(weights);
}

std::vector<float> DecodingCase::floats(const std::string& name) const { return value_of(f32_array(*arrays_, name)); }
std::vector<int32_t> DecodingCase::ids(const std::string& name) const { return value_of(i32_array(*arrays_, name)); }

}  // namespace syrinx::transducer
