#include "tensor/torch_file.h"

#include "files.h"
#include "stored_zip.h"

namespace syrinx {
namespace {

std::string archive_of(const std::string& pickle, const std::string& storage = std::string(16, '\0')) {
  return test::StoredZip{.members = {{.name = "m/data.pkl", .data = pickle}, {.name = "m/data/0", .data = storage}}}
      .make();
}
// Protocol 2: {'t': _rebuild_tensor_v2(storage '0' of `elements` f32, offset, dims, strides, False, OrderedDict())}
std::string pickled_tensor(char elements, char offset, const std::string& dims, const std::string& strides) {
  std::string p = "\x80\x02}X";
  p += std::string("\1\0\0\0t", 5) + "ctorch._utils\n_rebuild_tensor_v2\n((X" + std::string("\7\0\0\0storage", 11);
  p += "ctorch\nFloatStorage\nX" + std::string("\1\0\0\0", 4) + "0X" + std::string("\3\0\0\0cpuK", 8) + elements;
  return p + "tQK" + offset + dims + strides + "\x89" + "ccollections\nOrderedDict\n)RtRs.";
}

TEST(TorchFile, ReadsFilesOfTorch) {
  for (const char* name : {"nested.pth", "nested4.pth"}) {
    SCOPED_TRACE(name);
    const std::string bytes = test::read_data(name);
    const auto file = TorchFile::parse(test::as_bytes(bytes), name);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const Json expected = test::expected_tensors(name);
    EXPECT_EQ(file->tensors().size(), expected.object()->size());
    for (const JsonMember& member : *expected.object()) {
      const TorchTensor* const tensor = file->find(member.key);
      ASSERT_NE(tensor, nullptr) << member.key;
      test::expect_tensor(member, tensor->dtype, tensor->dims, read_f32(*tensor));
    }
    EXPECT_EQ(file->find("zzz"), nullptr);
    EXPECT_FALSE(file->find("views.transposed")->contiguous);
    EXPECT_TRUE(file->find("views.row")->contiguous);
  }
}

TEST(TorchFile, RefusesWholeObjectsAndOtherFiles) {
  const std::string module = test::read_data("module.pth");
  const auto refused = TorchFile::parse(test::as_bytes(module), "module.pth");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_NE(refused.error().message.find("torch.nn.modules.linear.Linear"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(TorchFile::parse(test::as_bytes("no zip"), "t").error().code, Code::kUnsupported);
  const std::string npz = test::read_data("arrays.npz");
  EXPECT_EQ(TorchFile::parse(test::as_bytes(npz), "t").error().code, Code::kUnsupported);
  test::StoredZip big{
      .members = {{.name = "m/data.pkl", .data = "\x80\x02}."}, {.name = "m/byteorder", .data = "big"}}};
  EXPECT_EQ(TorchFile::parse(test::as_bytes(big.make()), "t").error().code, Code::kUnsupported);
}

// Objects stand beside the weights, never among them, nor in a file that is nothing but weights.
TEST(TorchFile, LeavesSettingsOutBesideTheWeights) {
  const auto text = [](const std::string& word) {
    return "X" + std::string(1, static_cast<char>(word.size())) + std::string(3, '\0') + word;
  };
  const std::string settings = "comegaconf.dictconfig\nDictConfig\n)\x81}" + text("k") + "K\1sb";
  const std::string weights = pickled_tensor(4, 0, "K\4\x85", "K\1\x85");  // "\x80\x02", a dictionary, "."
  const std::string dict = weights.substr(2, weights.size() - 3);
  const auto parse = [](const std::string& pickle) {
    return TorchFile::parse(test::as_bytes(archive_of("\x80\x02" + pickle + ".")), "f");
  };
  const auto good = parse("}" + text("cfg") + settings + "s" + text("state_dict") + dict + "s" + text("on") + "(" +
                          settings + "Ktls");
  ASSERT_TRUE(good.has_value()) << good.error().message;
  ASSERT_EQ(good->tensors().size(), 1u);
  EXPECT_EQ(good->tensors()[0].name, "state_dict.t");
  for (const std::string& hostile :
       {"}" + text("cfg") + settings + "s" + text("weights") + dict + "s", settings,
        "}" + text("state_dict") + "}" + text("w") + settings + "s" + "s", "}" + text("state_dict") + settings + "s",
        "}" + text("state_dict") + "]" + settings + "a" + "s"}) {
    const auto file = parse(hostile);
    ASSERT_FALSE(file.has_value()) << hostile;
    EXPECT_EQ(file.error().code, Code::kUnsupported);
    EXPECT_NE(file.error().message.find("'omegaconf.dictconfig.DictConfig' among the tensors"), std::string::npos)
        << file.error().message;
  }
}

// Paths as keys, settings as deep as they like, and tensors under keys that have no text: nobody looks for them.
TEST(TorchFile, ObjectsBesideTheWeightsAreUnlimited) {
  const auto text = [](const std::string& word) {
    std::string out = "X";
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word.size() >> shift & 255);
    return out + word;
  };
  const std::string pickled = pickled_tensor(4, 0, "K\4\x85", "K\1\x85");
  const std::string dict = pickled.substr(2, pickled.size() - 3), tensor = pickled.substr(9, pickled.size() - 11);
  const std::string path = "}" + text("best") + "}" + text(std::string(2000, 'p')) + tensor + "s" + "s";
  const std::string deep = std::string(40, ']') + std::string(39, 'a');
  const std::string unnamed = "}N" + tensor + "s\x88" + tensor + "s";
  const std::string elsewhere = "}" + text("w") + pickled_tensor(4, 0, "K\5\x85", "K\1\x85").substr(9);
  const std::string outside = elsewhere.substr(0, elsewhere.size() - 2) + "s";  // more than its storage has
  for (const std::string& beside : {path, deep, unnamed, outside}) {
    const auto file = TorchFile::parse(
        test::as_bytes(archive_of("\x80\x02}" + text("a") + beside + "s" + text("state_dict") + dict + "s.")), "f");
    ASSERT_TRUE(file.has_value()) << file.error().message;
    ASSERT_EQ(file->tensors().size(), 1u);
    EXPECT_EQ(file->tensors()[0].name, "state_dict.t");
    const auto among = TorchFile::parse(
        test::as_bytes(archive_of("\x80\x02}" + text("state_dict") + "}" + text("a") + beside + "ss.")), "f");
    EXPECT_FALSE(among.has_value());
  }
}

TEST(TorchFile, ChecksTensorsAgainstTheirStorage) {
  const auto parse = [](const std::string& pickle) {
    return TorchFile::parse(test::as_bytes(archive_of(pickle)), "hostile");
  };
  const auto code = [&](const std::string& pickle) {
    const auto file = parse(pickle);
    return file ? Code::kInternal : file.error().code;
  };
  const std::string two_by_two = "K\2K\2\x86";
  const std::string strides = "K\2K\1\x86";
  ASSERT_TRUE(parse(pickled_tensor(4, 0, two_by_two, strides)).has_value())
      << parse(pickled_tensor(4, 0, two_by_two, strides)).error().message;
  EXPECT_EQ(code(pickled_tensor(4, 1, two_by_two, strides)), Code::kDataLoss);
  EXPECT_EQ(code(pickled_tensor(4, 0, "K\3K\2\x86", strides)), Code::kDataLoss);
  EXPECT_EQ(code(pickled_tensor(4, 0, two_by_two, "K\4K\1\x86")), Code::kDataLoss);
  EXPECT_EQ(code(pickled_tensor(4, 0, two_by_two, "K\1\x85")), Code::kDataLoss);
  EXPECT_EQ(code(pickled_tensor(4, 0, two_by_two, "J\xff\xff\xff\xffK\1\x86")), Code::kDataLoss);
  const std::string huge = "\x8a\x07" + std::string(6, '\xff') + std::string(1, '\x7f');
  EXPECT_EQ(code(pickled_tensor(4, 0, huge + huge + "\x86", strides)), Code::kDataLoss);
  EXPECT_EQ(code(pickled_tensor(4, 0, two_by_two, huge + huge + "\x86")), Code::kDataLoss);
  EXPECT_EQ(code(pickled_tensor(4, 0, "M\xff\xff\x85", std::string("K\0\x85", 3))), Code::kUnsupported);
  EXPECT_TRUE(parse(pickled_tensor(4, 0, std::string("K\0K\2\x86", 5), strides)).has_value());
  const std::string no_storage =
      test::StoredZip{.members = {{.name = "m/data.pkl", .data = pickled_tensor(4, 0, two_by_two, strides)}}}.make();
  EXPECT_EQ(TorchFile::parse(test::as_bytes(no_storage), "hostile").error().code, Code::kDataLoss);
}

TEST(TorchFile, BoundsNestingCyclesAndDuplicates) {
  const auto code = [](const std::string& pickle) {
    const auto file = TorchFile::parse(test::as_bytes(archive_of(pickle)), "hostile");
    return file ? Code::kInternal : file.error().code;
  };
  // A list that holds itself, twice: without bounds 2^depth steps.
  EXPECT_EQ(code(std::string("\x80\x02]q\0(h\0h\0e.", 12)), Code::kLimitExceeded);
  // d = {'a': d}
  EXPECT_EQ(code(std::string("\x80\x02}q\0X\1\0\0\0ah\0s.", 15)), Code::kLimitExceeded);
  std::string deep = "\x80\x02";
  for (int i = 0; i < 40; ++i) deep += "]";
  for (int i = 0; i < 39; ++i) deep += "a";
  EXPECT_EQ(code(deep + "."), Code::kLimitExceeded);
  std::string wide = std::string("\x80\x02]q\0.", 6);
  EXPECT_EQ(code(wide), Code::kInternal);  // an empty list is fine
  std::string bushy = "\x80\x02";          // eight levels of lists of sixteen equal lists: 16^8 steps
  bushy += std::string("]q\0", 3);
  for (char level = 1; level < 8; ++level) {
    bushy += "](";
    for (int i = 0; i < 16; ++i) bushy += std::string("h") + static_cast<char>(level - 1);
    bushy += std::string("eq") + level;
  }
  EXPECT_EQ(code(bushy + "."), Code::kLimitExceeded);
  const std::string tensor = pickled_tensor(4, 0, "K\2\x85", "K\1\x85");
  const std::string one = tensor.substr(3, tensor.size() - 5);  // key and value
  EXPECT_EQ(code("\x80\x02}(" + one + one + "u."), Code::kDataLoss);
}

TEST(TorchFile, SurvivesEveryTruncationAndFlip) {
  test::sweep_hostile(archive_of(pickled_tensor(4, 0, "K\2K\2\x86", "K\1K\2\x86")), [](auto bytes) {
    const auto file = TorchFile::parse(bytes, "hostile");
    if (file)
      for (const TorchTensor& tensor : file->tensors()) read_f32(tensor);
  });
}

}  // namespace
}  // namespace syrinx
