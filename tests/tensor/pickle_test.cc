#include "tensor/pickle.h"

#include "files.h"

namespace syrinx {
namespace {

using Kind = PickleValue::Kind;

// A literal with zeros inside.
template <size_t N>
std::string raw(const char (&text)[N]) {
  return std::string(text, N - 1);
}
Result<PickleGraph> parse(const std::string& pickle) { return parse_pickle(test::as_bytes(pickle), "p"); }

const PickleValue& root(const PickleGraph& graph) { return graph.values[graph.root]; }

TEST(Pickle, ReadsNumbers) {
  const auto whole = [](const std::string& pickle) {
    const auto graph = parse(pickle);
    EXPECT_TRUE(graph.has_value()) << graph.error().message;
    return root(*graph).whole;
  };
  EXPECT_EQ(whole("K\x07."), 7);
  EXPECT_EQ(whole(raw("M\x00\x01.")), 256);
  EXPECT_EQ(whole("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(whole(raw("\x8a\x00.")), 0);
  EXPECT_EQ(whole("\x8a\x01\xff."), -1);
  EXPECT_EQ(whole(raw("\x8a\x02\x00\x01.")), 256);
  EXPECT_EQ(whole("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff."), -1);
  EXPECT_EQ(whole("\x88."), 1);
  EXPECT_EQ(whole("\x89."), 0);
  EXPECT_EQ(root(*parse("N.")).kind, Kind::kNone);
  const auto real = parse(raw("G\x3f\xf8\0\0\0\0\0\0."));
  EXPECT_EQ(root(*real).real, 1.5);
}

TEST(Pickle, ReadsTextsInEveryForm) {
  for (const std::string& pickle : {raw("\x8c\x02hi."), raw("C\x02hi."), raw("U\x02hi."), raw("X\2\0\0\0hi."),
                                    raw("B\2\0\0\0hi."), raw("T\2\0\0\0hi."), raw("\x8d\2\0\0\0\0\0\0\0hi."),
                                    raw("\x8e\2\0\0\0\0\0\0\0hi."), raw("\x80\x04\x95\6\0\0\0\0\0\0\0\x8c\x02hi.")}) {
    const auto graph = parse(pickle);
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    EXPECT_EQ(root(*graph).text, "hi");
  }
}

TEST(Pickle, BuildsContainers) {
  struct Case {
    std::string pickle;
    Kind kind;
    size_t items;
  };
  const Case cases[] = {{").", Kind::kTuple, 0},
                        {"].", Kind::kList, 0},
                        {"}.", Kind::kDict, 0},
                        {"(NNNt.", Kind::kTuple, 3},
                        {"(NNl.", Kind::kList, 2},
                        {"(NNd.", Kind::kDict, 2},
                        {"N\x85.", Kind::kTuple, 1},
                        {"NN\x86.", Kind::kTuple, 2},
                        {"NNN\x87.", Kind::kTuple, 3},
                        {"]Na.", Kind::kList, 1},
                        {"](NNNe.", Kind::kList, 3},
                        {"}NNs.", Kind::kDict, 2},
                        {"}(NNNNu.", Kind::kDict, 4},
                        {"N2\x86.", Kind::kTuple, 2},
                        {"]N0.", Kind::kList, 0},
                        {"](NN1.", Kind::kList, 0},
                        {raw("]q\0r\1\0\0\0\x94h\0j\1\0\0\0h\2\x87."), Kind::kTuple, 3},
                        {"ccollections\nOrderedDict\n)R}b.", Kind::kDict, 0},
                        {"\x8c\x0b"
                         "collections\x8c\x0bOrderedDict\x93)R.",
                         Kind::kDict, 0},
                        {"ctorch\nSize\nK\1\x85\x85R.", Kind::kTuple, 1}};
  for (const Case& good : cases) {
    const auto graph = parse(good.pickle);
    ASSERT_TRUE(graph.has_value()) << good.pickle << graph.error().message;
    EXPECT_EQ(root(*graph).kind, good.kind) << good.pickle;
    EXPECT_EQ(root(*graph).items.size(), good.items) << good.pickle;
  }
  const auto pairs = parse("ccollections\nOrderedDict\n(NN\x86NN\x86l\x85R.");
  ASSERT_TRUE(pairs.has_value()) << pairs.error().message;
  EXPECT_EQ(root(*pairs).items.size(), 4u);
}

TEST(Pickle, RefusesEveryOtherNameAndCall) {
  const std::string storage = raw("(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000X\3\0\0\0cpuK\4tQ");
  struct Case {
    std::string pickle;
    Code code;
  };
  const Case cases[] = {
      {"cos\nsystem\n(X\4\0\0\0exittR.", Code::kUnsupported},
      {"cbuiltins\neval\n.", Code::kUnsupported},
      {"c__builtin__\ngetattr\n.", Code::kUnsupported},
      {"\x8c\x02os\x8c\x06system\x93.", Code::kUnsupported},
      {"NN\x93.", Code::kUnsupported},
      {"\x80\x05N.", Code::kUnsupported},
      {"i", Code::kUnsupported},  // INST
      {"(ios\nsystem\n.", Code::kUnsupported},
      {"ccollections\nOrderedDict\n)\x81.", Code::kUnsupported},  // NEWOBJ
      {"N)\x81.", Code::kUnsupported},
      {"cbuiltins\ndict\nN\x81.", Code::kDataLoss},
      {"cbuiltins\ndict\nNR.", Code::kDataLoss},
      {"cbuiltins\nexec\n.", Code::kUnsupported},
      {"comegaconfig\nX\n.", Code::kUnsupported},
      {"ctyping\nget_type_hints\n.", Code::kUnsupported},
      {"\x82\x01", Code::kUnsupported},  // EXT1
      {"P0\n.", Code::kUnsupported},     // persistent id as text
      {"I1\n.", Code::kUnsupported},     // protocol 0
      {"\x8a\x09"
       "123456789.",
       Code::kUnsupported},
      {"ctorch\nFloatStorage\n)R.", Code::kUnsupported},
      {"N)R.", Code::kDataLoss},
      {"ccollections\nOrderedDict\nNR.", Code::kDataLoss},
      {"ccollections\nOrderedDict\n(NNNNNNNNNNNNNNNNNtR.", Code::kDataLoss},
      {"ccollections\nOrderedDict\n(Nl\x85R.", Code::kDataLoss},
      {"]Nb.", Code::kUnsupported},
      {"ctorch\nSize\n)R.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_parameter\n)R.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_parameter\nN\x85R.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_tensor_v2\n)R.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_tensor_v2\n(NK\1))tR.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "J\xff\xff\xff\xff))tR.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\1N)tR.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\1N\x85)tR.", Code::kDataLoss},
      {"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\1(K\1K\1K\1K\1K\1K\1K\1K\1K\1t)tR.", Code::kDataLoss},
      {"NQ.", Code::kDataLoss},
      {")Q.", Code::kDataLoss},
      {"(NNNNNtQ.", Code::kDataLoss},
      {raw("(X\7\0\0\0storageNX\1\0\0\0000X\3\0\0\0cpuK\4tQ."), Code::kDataLoss},
      {raw("(X\7\0\0\0storagectorch\nSize\nX\1\0\0\0000X\3\0\0\0cpuK\4tQ."), Code::kDataLoss},
  };
  EXPECT_TRUE(parse("ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\1))tR.").has_value());
  EXPECT_TRUE(
      parse("ctorch._utils\n_rebuild_parameter\nctorch._utils\n_rebuild_tensor_v2\n(" + storage + "K\1))tR\x85R.")
          .has_value());
  for (const Case& hostile : cases) {
    const auto graph = parse(hostile.pickle);
    ASSERT_FALSE(graph.has_value()) << hostile.pickle;
    EXPECT_EQ(graph.error().code, hostile.code) << hostile.pickle << ": " << graph.error().message;
  }
}

// Whatever is made of a class of settings, called on it or put into it, nothing is known but the class.
TEST(Pickle, KeepsSettingsAsNamesAlone) {
  const std::string config = "comegaconf.dictconfig\nDictConfig\n";
  for (const std::string& pickle :
       {config + ".", config + ")\x81.", config + ")R.", config + "(cbuiltins\ndict\nNtR.", config + ")\x81}NNsb.",
        config + ")\x81Nb.", config + ")\x81NNs.", config + ")\x81(NNNNu.", config + ")\x81Na.", config + ")\x81(NNe.",
        config + ")\x81)R."}) {
    const auto graph = parse(pickle);
    ASSERT_TRUE(graph.has_value()) << pickle << graph.error().message;
    ASSERT_EQ(root(*graph).kind, Kind::kObject) << pickle;
    EXPECT_TRUE(root(*graph).items.empty()) << pickle;
    const PickleObject& object = graph->objects[static_cast<size_t>(root(*graph).whole)];
    EXPECT_EQ(object.module, "omegaconf.dictconfig");
    EXPECT_EQ(object.name, "DictConfig");
  }
  for (const char* known : {"ctyping\nAny\n.", "c__builtin__\nlong\n.", "ccollections\ndefaultdict\n.",
                            "clightning.pytorch.utilities.parsing\nAttributeDict\n.", "cnemo.core.config\nX\n."})
    EXPECT_EQ(root(*parse(known)).kind, Kind::kObject) << known;
}

TEST(Pickle, RefusesABrokenStack) {
  for (const std::string& pickle : {raw("."),
                                    raw("0."),
                                    raw("2."),
                                    raw("1."),
                                    raw("t."),
                                    raw("e."),
                                    raw("]e."),
                                    raw("u."),
                                    raw("}(Nu."),
                                    raw("}(Nd."),
                                    raw("a."),
                                    raw("Na."),
                                    raw("NNa."),
                                    raw("NNNs."),
                                    raw("s."),
                                    raw("\x85."),
                                    raw("N\x87."),
                                    raw("Q."),
                                    raw("\x81."),
                                    raw(")\x81."),
                                    raw("R."),
                                    raw("NR."),
                                    raw("b."),
                                    raw("Nb."),
                                    raw("\x93."),
                                    raw("q\0."),
                                    raw("h\0."),
                                    raw("j\0\0\0\0."),
                                    raw("N(0."),
                                    raw("N(\x85."),
                                    raw(""),
                                    raw("N"),
                                    raw("K"),
                                    raw("X\xff\xff\xff\xffhi."),
                                    raw("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi."),
                                    raw("cos"),
                                    raw("cos\nsys"),
                                    raw("(.")}) {
    const auto graph = parse(pickle);
    ASSERT_FALSE(graph.has_value()) << pickle;
    EXPECT_EQ(graph.error().code, Code::kDataLoss) << pickle << ": " << graph.error().message;
  }
}

TEST(Pickle, RefusesExcessiveFiles) {
  EXPECT_EQ(parse(std::string(5000, '(') + ".").error().code, Code::kLimitExceeded);
  EXPECT_EQ(parse(std::string((1 << 20) + 2, 'N') + ".").error().code, Code::kLimitExceeded);
  EXPECT_EQ(parse(std::string((16 << 20) + 1, 'N')).error().code, Code::kLimitExceeded);
  // A list of a thousand items, appended to others again and again.
  std::string copies = raw("](") + std::string(1000, 'N') + raw("l\x85q\0") + raw("ccollections\nOrderedDict\nq\1");
  std::string pairs = raw("](");
  for (int i = 0; i < 1000; ++i) pairs += "NN\x86";
  pairs += raw("l\x85q\0") + raw("ccollections\nOrderedDict\nq\1");
  for (int i = 0; i < 5000; ++i) pairs += raw("h\1h\0R");
  EXPECT_EQ(parse(pairs + ".").error().code, Code::kLimitExceeded);
}

TEST(Pickle, SurvivesEveryTruncationAndFlip) {
  const std::string bytes = raw("\x80\x02}q\0(X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\nq\1(("
                                "X\7\0\0\0storageq\2ctorch\nFloatStorage\nq\3") +
                            raw("X\1\0\0\0000q\4X\3\0\0\0cpuq\5K\6tq\6QK\0K\2K\3\x86q\7K\3K\1\x86q\10\x89"
                                "ccollections\nOrderedDict\nq\11)Rq\12tRq\13") +
                            raw("X\1\0\0\0b](K\1M\1\1J\1\0\0\0\x8a\1\1G\0\0\0\0\0\0\0\0N\x88\x89"
                                "eu}b.");
  ASSERT_TRUE(parse(bytes).has_value()) << parse(bytes).error().message;
  test::sweep_hostile(bytes, [](auto hostile) { (void)parse_pickle(hostile, "hostile"); });
}

}  // namespace
}  // namespace syrinx
