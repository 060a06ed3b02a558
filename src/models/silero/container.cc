#include "models/silero/container.h"

#include <algorithm>
#include <string_view>

#include "base/byte_reader.h"
#include "base/in_quotes.h"
#include "tensor/dtype.h"

namespace syrinx::silero {
namespace {

constexpr uint32_t kMagic = 0x67676d6c;
constexpr std::string_view kKind = "silero-16k";
constexpr uint32_t kMaxNameBytes = 128, kMaxDims = 4;

struct HeaderNumber {
  const char* name;
  uint32_t value;
};
constexpr HeaderNumber kVersion[] = {{"major version", 6}, {"minor version", 2}, {"patch version", 0}};
constexpr HeaderNumber kFrame[] = {{"window", 512}, {"context", 64}, {"number of encoder layers", kEncoderLayers}};
constexpr HeaderNumber kLstm[] = {
    {"LSTM input", kHidden}, {"LSTM width", kHidden}, {"final input", kHidden}, {"final output", 1}};

struct Record {
  std::string name;
  std::vector<size_t> dims;  // C order
  DType dtype = DType::kF32;
  std::vector<float>* values = nullptr;
};

// Every tensor of the file, with the place where it goes.
std::vector<Record> expected_records(Tensors& tensors) {
  std::vector<Record> records;
  const auto add = [&records](std::string name, std::vector<size_t> dims, DType dtype, std::vector<float>& values) {
    records.push_back({"_model." + std::move(name), std::move(dims), dtype, &values});
  };
  for (size_t i = 0; i < kEncoderLayers; ++i) {
    const std::string layer = fmt::format("encoder.{}.reparam_conv.", i);
    add(layer + "weight", {kEncoder[i].outputs, kEncoder[i].inputs, kEncoderTaps}, DType::kF16,
        tensors.encoder[i].weight);
    add(layer + "bias", {kEncoder[i].outputs}, DType::kF32, tensors.encoder[i].bias);
  }
  add("decoder.rnn.weight_ih", {4 * kHidden, kHidden}, DType::kF32, tensors.input_weight);
  add("decoder.rnn.weight_hh", {4 * kHidden, kHidden}, DType::kF32, tensors.recurrent_weight);
  add("decoder.rnn.bias_ih", {4 * kHidden}, DType::kF32, tensors.input_bias);
  add("decoder.rnn.bias_hh", {4 * kHidden}, DType::kF32, tensors.recurrent_bias);
  add("decoder.decoder.2.weight", {kHidden}, DType::kF16, tensors.output_weight);
  add("decoder.decoder.2.bias", {}, DType::kF32, tensors.output_bias);
  add("stft.forward_basis_buffer", {2 * kBins, 1, kBasisSamples}, DType::kF16, tensors.basis);
  return records;
}

tl::unexpected<Error> cut_off(const std::string& name, size_t at) {
  return fail(Code::kDataLoss, "{} ends inside what begins at byte {}; fetch it again", in_quotes(name), at);
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& name) : reader_(bytes), name_(name) {}

  Status header() {
    if (reader_.u32() != kMagic || reader_.failed())
      return fail(Code::kDataLoss, "{} is not a file of whisper.cpp: it does not begin with its four bytes",
                  in_quotes(name_));
    const uint32_t size = reader_.u32();
    if (size > kMaxNameBytes)
      return fail(Code::kDataLoss, "{} names its kind in {} bytes; the limit is {}", in_quotes(name_), size,
                  kMaxNameBytes);
    const std::string_view kind = reader_.text(size);
    if (reader_.failed()) return cut_off(name_, 4);
    if (kind != kKind)
      return fail(Code::kUnsupported, "{} holds {}, which cannot be run; Silero VAD v6.2 is '{}'", in_quotes(name_),
                  in_quotes(kind), kKind);
    SYRINX_TRY_VOID(numbers(kVersion));
    SYRINX_TRY_VOID(numbers(kFrame));
    for (const EncoderShape& layer : kEncoder) {
      const HeaderNumber shape[] = {{"input of an encoder layer", static_cast<uint32_t>(layer.inputs)},
                                    {"output of an encoder layer", static_cast<uint32_t>(layer.outputs)},
                                    {"kernel of an encoder layer", kEncoderTaps}};
      SYRINX_TRY_VOID(numbers(shape));
    }
    return numbers(kLstm);
  }

  // One tensor, to its place in `records`.
  Status record(std::vector<Record>& records) {
    const size_t begin = reader_.position();
    const uint32_t rank = reader_.u32(), name_size = reader_.u32(), type = reader_.u32();
    if (reader_.failed()) return cut_off(name_, begin);
    if (rank > kMaxDims || name_size > kMaxNameBytes)
      return fail(Code::kDataLoss,
                  "{} has a tensor of {} dimensions and a name of {} bytes at byte {}; the limits are {} and {}",
                  in_quotes(name_), rank, name_size, begin, kMaxDims, kMaxNameBytes);
    std::vector<size_t> dims(rank);
    for (size_t i = rank; i-- > 0;) dims[i] = reader_.u32();  // the file begins with the axis that runs fastest
    const std::string_view tensor = reader_.text(name_size);
    if (reader_.failed()) return cut_off(name_, begin);
    const auto known = std::find_if(records.begin(), records.end(), [&](const Record& r) { return r.name == tensor; });
    if (known == records.end())
      return fail(Code::kDataLoss, "{} has a tensor {} that the model does not have", in_quotes(name_),
                  in_quotes(tensor));
    if (!known->values->empty())
      return fail(Code::kDataLoss, "{} has the tensor {} twice", in_quotes(name_), in_quotes(tensor));
    const uint32_t wanted_type = known->dtype == DType::kF32 ? 0 : 1;
    if (dims != known->dims || type != wanted_type)
      return fail(Code::kDataLoss, "{} has the tensor {} as type {} {}; it must be {} {}", in_quotes(name_),
                  in_quotes(tensor), type, dims_text(dims), wanted_type, dims_text(known->dims));
    const auto bytes = reader_.take(*element_count(known->dims) * dtype_size(known->dtype));
    if (reader_.failed()) return cut_off(name_, begin);
    if (!all_finite(bytes, known->dtype))
      return fail(Code::kDataLoss, "{} has a value in {} that is not a finite number", in_quotes(name_),
                  in_quotes(tensor));
    *known->values = to_f32(bytes, known->dtype);
    return {};
  }

  bool at_end() const { return reader_.at_end(); }

 private:
  Status numbers(std::span<const HeaderNumber> wanted) {
    for (const HeaderNumber& number : wanted) {
      const size_t begin = reader_.position();
      const uint32_t value = reader_.u32();
      if (reader_.failed()) return cut_off(name_, begin);
      if (value != number.value)
        return fail(Code::kUnsupported, "{} says {} for {}; only Silero VAD v6.2 can be run, with {}", in_quotes(name_),
                    value, number.name, number.value);
    }
    return {};
  }

  ByteReader reader_;
  const std::string& name_;
};

}  // namespace

Result<Tensors> parse_container(std::span<const std::byte> bytes, const std::string& name) {
  Parser parser(bytes, name);
  SYRINX_TRY_VOID(parser.header());
  Tensors tensors;
  std::vector<Record> records = expected_records(tensors);
  while (!parser.at_end()) SYRINX_TRY_VOID(parser.record(records));
  // A file that is cut between two records still reads well up to there.
  for (const Record& record : records) {
    if (record.values->empty())
      return fail(Code::kDataLoss, "{} lacks the tensor '{}'; fetch it again", in_quotes(name), record.name);
  }
  return tensors;
}

}  // namespace syrinx::silero
