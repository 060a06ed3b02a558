// Pulling a family's member whose files a hub gives out: gated weights, voices on demand, revisions, the hub's cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "engine/families/fetch_remote_parts.h"
#include "engine/families/find_speech_files.h"
#include "engine/speech/remote_files.h"
#include "engine/speech/speech_files.h"
#include "store/model_store.h"
#include "tests/store/files.h"
#include "tests/store/http_server.h"

namespace syrinx {
namespace {

using testing::exists;
using testing::Folder;
using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpRequest;
using testing::HttpServer;
using testing::read_text;
using testing::ScopedVariable;
using testing::write_text;

constexpr const char* kFamily = R"(
name = "bird"
kind = "pocket-tts"
description = "A {about} bird"
licence = "CC-BY-4.0"
default = "small"
[[group]]
role = "config"
files = [{ name = "config.yaml", text = "size: {about}\n" }]
[[group]]
role = "model"
choice = "cloning"
files = [{ name = "model.safetensors", about = "100000" }]
[[group.source]]
kind = "hub"
reference = "hf://birds/gated/{variant}/model.safetensors@{commit}"
[[group]]
role = "model"
choice = "without-cloning"
files = [{ name = "open.safetensors", about = "100000" }]
[[group.source]]
kind = "hub"
reference = "hf://birds/open/{variant}/model.safetensors@{commit}"
[[group]]
role = "voice"
folder = "embeddings"
pick = ["a_one.safetensors"]
files = [{ name = "a_one.safetensors" }, { name = "b.safetensors" }, { name = "c.safetensors" }]
[[group.source]]
kind = "hub"
reference = "hf://birds/open/{variant}/{name}@{commit}"
[variants]
small = { about = "small" }
"large_2026-10" = { about = "large" }
[values]
commit = "COMMIT"
)";

class HubPull : public ::testing::Test {
 protected:
  HubPull()
      : hub_([this](const HttpRequest& request) { return answer(request); }),
        variables_{ScopedVariable("HF_ENDPOINT", hub_.url("")),
                   ScopedVariable("HF_HUB_CACHE", folder_ / "hf"),
                   ScopedVariable("HF_TOKEN", ""),
                   ScopedVariable("HUGGING_FACE_HUB_TOKEN", ""),
                   ScopedVariable("HF_TOKEN_PATH", folder_ / "token"),
                   ScopedVariable("HF_HUB_OFFLINE", ""),
                   ScopedVariable("TRANSFORMERS_OFFLINE", ""),
                   ScopedVariable("SYRINX_HOME", folder_ / "home")} {
    options_.on_event = [this](const PullEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }

  // Every file of the hub has its name and revision for content, stretched; "small" files are in git, without a hash.
  std::string content(const std::string& target) const {
    return testing::random_bytes(target.find("/model.safetensors") != std::string::npos ? 100000 : 3000,
                                 static_cast<unsigned>(std::hash<std::string>()(target)));
  }
  HttpAnswer answer(const HttpRequest& request) {
    if (request.target.starts_with("/birds/gated/") && request.authorization != "Bearer hf_good")
      return HttpAnswer{401, {"X-Error-Code: GatedRepo"}, ""};
    std::string body = content(request.target);
    const std::string hash = testing::hash_of(body);
    if (broken_) body[0] = static_cast<char>(body[0] ^ 1);
    HttpAnswer reply = testing::serve_range(request, body);
    reply.headers.push_back("X-Repo-Commit: " + commit_);
    reply.headers.push_back("X-Linked-Size: " + std::to_string(body.size()));
    reply.headers.push_back("X-Linked-ETag: \"" + hash + "\"");
    return reply;
  }

  ModelStore store() const {
    std::string text = kFamily;
    text.replace(text.find("COMMIT"), 6, commit_);
    auto family = parse_catalogue(text, "bird.toml");
    if (!family) ADD_FAILURE() << family.error().message;
    return ModelStore(UserPaths{folder_ / "data", folder_ / "cache"}, *Catalogue::make(std::move(*family)));
  }
  Status pull(const std::string& name = "bird") { return store().pull(name, options_); }
  void give_token() { write_text(folder_ / "token", "hf_good\n"); }
  std::string in_bird(const std::string& name) const { return folder_ / ("data/models/bird@small/" + name); }
  std::string of_hub(const std::string& repository, const std::string& name) const {
    return content("/birds/" + repository + "/resolve/" + commit_ + "/small/" + name);
  }
  size_t fetched() const {  // requests for content
    size_t count = 0;
    for (const auto& request : hub_.requests()) count += request.method == "GET" ? 1 : 0;
    return count;
  }
  PullEvent last(PullEvent::Kind kind) const {
    PullEvent found;
    for (const auto& event : events_) {
      if (event.kind == kind) found = event;
    }
    return found;
  }

  std::string commit_ = std::string(40, 'a');
  std::atomic<bool> broken_{false};
  Folder folder_;
  HttpServer hub_;
  ScopedVariable variables_[8];
  PullOptions options_;
  std::mutex mutex_;
  std::vector<PullEvent> events_;
};

TEST_F(HubPull, InstallsTheDefaultMember) {
  give_token();
  const Status pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(in_bird("config.yaml")), "size: small\n");
  EXPECT_EQ(read_text(in_bird("model.safetensors")), of_hub("gated", "model.safetensors"));
  EXPECT_EQ(read_text(in_bird("embeddings/a_one.safetensors")), of_hub("open", "a_one.safetensors"));
  EXPECT_FALSE(exists(in_bird("embeddings/b.safetensors")));
  EXPECT_FALSE(exists(in_bird("open.safetensors")));
  const PullEvent plan = last(PullEvent::Kind::kPlan);
  EXPECT_EQ(plan.model, "bird:small");
  EXPECT_EQ(plan.missing_bytes, 100000u + 3000u + 12u);
  EXPECT_EQ(plan.total_bytes, plan.missing_bytes);
  EXPECT_THAT(last(PullEvent::Kind::kNotice).text, HasSubstr("2 more voices"));
  const auto model = store().find("bird");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name, "bird:small");
  EXPECT_EQ(model->first("model")->origin, "hf://birds/gated/small/model.safetensors@" + commit_);
  EXPECT_EQ(model->first("model")->sha256, testing::hash_of(of_hub("gated", "model.safetensors")));
  // The second time nobody is asked.
  const size_t requests = hub_.count();
  options_.offline = true;
  options_.verify = true;
  ASSERT_TRUE(pull());
  EXPECT_EQ(hub_.count(), requests);
  EXPECT_EQ(store().list()[1].state, ModelState::kInstalled);
  EXPECT_EQ(store().list()[1].total_bytes, 103012u);
}

TEST_F(HubPull, GatedWeightsEndThePullBeforeAnythingIsFetched) {
  const Status refused = pull();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("accept them at " + hub_.url("/birds/gated")));
  EXPECT_THAT(refused.error().message, HasSubstr("`syrinx pull bird:small --without-cloning`"));
  EXPECT_EQ(fetched(), 0u);
  EXPECT_FALSE(exists(in_bird("config.yaml")));
}

TEST_F(HubPull, TheFreeFormStaysUntilTheOtherIsAskedFor) {
  options_.cloning = CloningWish::kWithout;
  ASSERT_TRUE(pull());
  EXPECT_EQ(read_text(in_bird("open.safetensors")), of_hub("open", "model.safetensors"));
  EXPECT_FALSE(exists(in_bird("model.safetensors")));
  options_.cloning = CloningWish::kAsInstalled;
  options_.voices = {"b"};
  const Status more = pull();
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_TRUE(exists(in_bird("embeddings/b.safetensors")));
  options_.cloning = CloningWish::kWith;
  options_.voices.clear();
  EXPECT_THAT(pull().error().message, HasSubstr("accept"));
  EXPECT_TRUE(store().find("bird"));
  give_token();
  ASSERT_TRUE(pull());
  EXPECT_TRUE(exists(in_bird("model.safetensors")));
  EXPECT_FALSE(exists(in_bird("open.safetensors")));
  EXPECT_EQ(store().find("bird")->files.size(), 4u);  // both voices are still there
  options_.cloning = CloningWish::kWithout;           // served by what is there
  const size_t requests = hub_.count();
  ASSERT_TRUE(pull());
  EXPECT_EQ(hub_.count(), requests);
}

// Gated weights that would have to be fetched again serve nobody who asked for the free ones.
TEST_F(HubPull, TheFreeFormReplacesGatedWeightsOfAnotherRevision) {
  give_token();
  ASSERT_TRUE(pull());
  write_text(folder_ / "token", "");
  options_.cloning = CloningWish::kWithout;
  ASSERT_TRUE(pull());
  EXPECT_FALSE(exists(in_bird("open.safetensors")));
  commit_ = std::string(40, 'b');
  const Status pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(in_bird("open.safetensors")), of_hub("open", "model.safetensors"));
  EXPECT_FALSE(exists(in_bird("model.safetensors")));
}

TEST_F(HubPull, VoicesAreFetchedOnDemand) {
  give_token();
  options_.voices = {"a_one", "c"};
  ASSERT_TRUE(pull("bird:small"));
  EXPECT_FALSE(exists(in_bird("embeddings/b.safetensors")));
  EXPECT_TRUE(exists(in_bird("embeddings/c.safetensors")));
  options_.voices = {"all"};
  ASSERT_TRUE(pull());
  EXPECT_EQ(read_text(in_bird("embeddings/b.safetensors")), of_hub("open", "b.safetensors"));
  options_.voices = {"d"};
  const Status unknown = pull();
  EXPECT_EQ(unknown.error().code, Code::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("has no voice 'd'; it has: a_one, b, c"));
}

TEST_F(HubPull, AnotherRevisionIsFetchedAnew) {
  give_token();
  ASSERT_TRUE(pull());
  commit_ = std::string(40, 'b');
  ASSERT_TRUE(pull());
  EXPECT_EQ(read_text(in_bird("model.safetensors")), of_hub("gated", "model.safetensors"));
  EXPECT_EQ(store().find("bird")->first("model")->origin, "hf://birds/gated/small/model.safetensors@" + commit_);
}

// A change of revision that stops halfway leaves files of two revisions, which are no model.
TEST_F(HubPull, AHalfChangedModelIsNotInstalled) {
  give_token();
  options_.voices = {"b"};
  ASSERT_TRUE(pull());
  const std::string weights = read_text(in_bird("model.safetensors"));
  commit_ = std::string(40, 'b');
  broken_ = true;
  ASSERT_FALSE(pull());
  EXPECT_TRUE(read_text(in_bird("model.safetensors")) == weights);
  EXPECT_TRUE(store().find("bird"));  // nothing was replaced yet
  broken_ = false;
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.on_event = [&](const PullEvent& event) {
    cancel = cancel || (event.kind == PullEvent::Kind::kSource && event.text.find("voice") != std::string::npos);
  };
  ASSERT_FALSE(pull());
  EXPECT_TRUE(read_text(in_bird("model.safetensors")) != weights);
  EXPECT_EQ(store().find("bird").error().code, Code::kNotFound);
  options_ = PullOptions();
  const Status pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(in_bird("embeddings/b.safetensors")), of_hub("open", "b.safetensors"));  // it was chosen once
  EXPECT_EQ(store().find("bird")->files.size(), 4u);
  EXPECT_FALSE(exists(in_bird("changing")));
}

TEST_F(HubPull, DamageIsMended) {
  give_token();
  ASSERT_TRUE(pull());
  write_text(in_bird("model.safetensors"), std::string(100000, 'x'));
  write_text(in_bird("config.yaml"), "size: tiny!\n");
  const size_t before = fetched();
  ASSERT_TRUE(pull());
  EXPECT_EQ(fetched(), before + 1);
  EXPECT_EQ(read_text(in_bird("model.safetensors")), of_hub("gated", "model.safetensors"));
  EXPECT_EQ(read_text(in_bird("config.yaml")), "size: small\n");
}

TEST_F(HubPull, WrongBytesAreNeverInstalled) {
  give_token();
  broken_ = true;
  const Status wrong = pull();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kDataLoss);
  EXPECT_THAT(wrong.error().message, HasSubstr("cannot fetch model.safetensors of 'bird:small'"));
  EXPECT_FALSE(exists(in_bird("model.safetensors")));
  EXPECT_EQ(store().find("bird").error().code, Code::kNotFound);
  EXPECT_THAT(store().find("bird").error().message, HasSubstr("`syrinx pull bird`"));
  broken_ = false;
  EXPECT_TRUE(pull());
}

TEST_F(HubPull, TakesAndVerifiesCachedFiles) {
  const std::string repository = folder_ / "hf/models--birds--gated";
  const std::string weights = of_hub("gated", "model.safetensors");
  const std::string blob = repository + "/blobs/" + testing::hash_of(weights);
  write_text(blob, weights);
  const std::string snapshot = repository + "/snapshots/" + commit_ + "/small";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_symlink(blob, snapshot + "/model.safetensors");
  ASSERT_TRUE(pull());  // without a token: the weights are here already
  EXPECT_EQ(read_text(in_bird("model.safetensors")), weights);
  ASSERT_TRUE(store().remove("bird"));
  EXPECT_FALSE(exists(in_bird("")));
  write_text(blob, weights.substr(0, 5000));  // cut off
  EXPECT_THAT(pull().error().message, HasSubstr("accept"));
}

TEST_F(HubPull, FilesBroughtByHandAreTakenAfterACheck) {
  give_token();
  write_text(in_bird("model.safetensors"), of_hub("gated", "model.safetensors"));
  ASSERT_TRUE(pull());
  for (const auto& request : hub_.requests()) {
    EXPECT_TRUE(request.method == "HEAD" || request.target.find("/gated/") == std::string::npos);
  }
  EXPECT_EQ(store().find("bird")->files.size(), 3u);
}

TEST_F(HubPull, OfflineMakesNoRequest) {
  options_.offline = true;
  EXPECT_EQ(pull().error().code, Code::kUnavailable);
  options_.offline = false;
  const ScopedVariable offline("HF_HUB_OFFLINE", "1");
  EXPECT_THAT(pull().error().message, HasSubstr("HF_HUB_OFFLINE"));
  EXPECT_EQ(hub_.count(), 0u);
}

// Voices have no size in the catalogue: that nothing is known to be missing does not mean that nothing is.
TEST_F(HubPull, OfflineTakesCachedFiles) {
  give_token();
  ASSERT_TRUE(pull());
  const size_t requests = hub_.count();
  options_.offline = true;
  options_.voices = {"b"};
  const Status absent = pull();
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kUnavailable);
  EXPECT_THAT(absent.error().message, HasSubstr("b.safetensors"));
  EXPECT_THAT(absent.error().message, HasSubstr("--offline"));
  write_text(folder_ / ("hf/models--birds--open/snapshots/" + commit_ + "/small/b.safetensors"), "sound");
  write_text(in_bird("config.yaml"), "size: tiny!\n");  // its text is in the catalogue
  const Status pulled = pull();
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(in_bird("embeddings/b.safetensors")), "sound");
  EXPECT_EQ(read_text(in_bird("config.yaml")), "size: small\n");
  EXPECT_EQ(hub_.count(), requests);
}

TEST_F(HubPull, TwoAtOnceFetchEachFileOnce) {
  give_token();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this, &good] {
      if (store().pull("bird", PullOptions())) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(fetched(), 2u);
}

TEST_F(HubPull, NamesBecomeFoldersAndFiles) {
  give_token();
  ASSERT_TRUE(pull());
  write_text(in_bird("config.yaml"), read_text(std::string(SYRINX_TEST_DATA) + "/pocket_tts/english/config.yaml"));
  const auto found = find_speech_files("bird:small", folder_ / "data/models");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->checkpoint, in_bird("config.yaml"));
  EXPECT_EQ(packed_folder(UserPaths{"/d", "/c"}, *found), "/c/packed/bird@small");
  // A family's name alone is its default member's, down to the folder of packed weights.
  write_text(folder_ / "data/models/pocket-tts@english/config.yaml", read_text(in_bird("config.yaml")));
  const auto family = find_speech_files("pocket-tts", folder_ / "data/models");
  ASSERT_TRUE(family) << family.error().message;
  EXPECT_EQ(packed_folder(UserPaths{"/d", "/c"}, *family), "/c/packed/pocket-tts@english");
  const auto config = fetch("hf://birds/open/x/config.yaml@" + commit_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, folder_ / ("home/data/fetched/hub/birds/open/" + commit_ + "/x/config.yaml"));
  const HttpServer large([](const HttpRequest&) { return HttpAnswer{200, {}, std::string((1 << 20) + 1, '#')}; });
  EXPECT_EQ(fetch(large.url("/config.yml")).error().code, Code::kLimitExceeded);
}

// Weights behind terms are not silently replaced by free ones.
TEST_F(HubPull, ARefusalHoldsForTheWholeConfiguration) {
  const auto locate = remote_locator();
  EXPECT_TRUE(locate("hf://birds/open/small/voice.safetensors@" + commit_));
  const auto gated = locate("hf://birds/gated/small/model.safetensors@" + commit_);
  ASSERT_FALSE(gated);
  EXPECT_THAT(gated.error().message, HasSubstr("--without-cloning"));
  const size_t requests = hub_.count();
  EXPECT_EQ(locate("hf://birds/open/small/model.safetensors@" + commit_).error().message, gated.error().message);
  EXPECT_EQ(hub_.count(), requests);
}

// A configuration as the maker publishes it, and a voice: all that they name is fetched and shown, once.
TEST_F(HubPull, TheRemotePartsOfAModelAreFetchedBeforeItIsLoaded) {
  std::string config = testing::read_text(std::string(SYRINX_TEST_DATA) + "/pocket_tts/english/config.yaml");
  const auto name = [&config](const std::string& from, const std::string& to) {
    config.replace(config.find(from), from.size(), to);
  };
  name("model.safetensors", "hf://birds/open/small/model.safetensors@" + commit_);
  name("../tokenizer.json", "hf://birds/open/small/tokenizer.json@" + commit_);
  write_text(folder_ / "given/config.yaml", config);
  std::vector<std::string> sources;
  const FetchReport report = [&sources](const PullEvent& event) {
    if (event.kind == PullEvent::Kind::kSource) sources.push_back(event.text);
  };
  const std::string voice = "hf://birds/open/small/b.safetensors@" + commit_;
  const Status fetched = fetch_remote_parts(folder_ / "given", voice, report);
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_EQ(sources.size(), 3u);
  const size_t requests = hub_.count();
  ASSERT_TRUE(fetch_remote_parts(folder_ / "given/config.yaml", voice, report));
  ASSERT_TRUE(fetch_remote_parts("kokoro", "af_heart", report));
  ASSERT_TRUE(fetch_remote_parts(folder_ / "given/none.yaml", "me.wav", report));
  EXPECT_EQ(hub_.count(), requests);
  EXPECT_FALSE(fetch_remote_parts("hf://birds/gated/config.yaml@" + commit_, "", report));
}

// Mistakes of a family, each by what replaces a piece of the good one.
TEST(Family, MistakesAreNamed) {
  std::string good = kFamily;
  good.replace(good.find("COMMIT"), 6, std::string(40, 'a'));
  ASSERT_TRUE(parse_catalogue(good, "bird.toml"));
  const std::vector<std::array<const char*, 3>> mistakes = {
      {"A {about} bird", "A {colour} bird", "there is no value 'colour'"},
      {"A {about} bird", "A {about bird", "a brace that is not part of a {key}"},
      {"A {about} bird", "A } bird", "a brace"},
      {"about = \"small\"", "about = \"{about}\"", "levels deep"},
      {"commit = \"", "commit = \"x", "40 digits of a commit"},
      {"default = \"small\"", "default = \"tall\"", "'default' must be"},
      {"default = \"small\"", "", "'default' is missing"},
      {"large_2026-10", "Large", "not a name of a variant"},
      {"small = { about = \"small\" }", "small = 5", "'variants' must be a table"},
      {"about = \"large\"", "about = 5", "'variants' must hold texts"},
      {"about = \"large\"", "variant = \"x\"", "other than name and variant"},
      {"pick = [\"a_one.safetensors\"]", "pick = [\"z.safetensors\"]", "'pick' names 'z.safetensors'"},
      {"pick = [\"a_one.safetensors\"]", "pick = []", "'pick' must be 1 to"},
      {"choice = \"cloning\"", "choice = \"maybe\"", "'choice' must be"},
      {"about = \"100000\"", "about = \"lots\"", "'about' must be"},
      {"about = \"100000\"", "size = 5, sha256 = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
       "they are the hub's to tell"},
      {"{ name = \"b.safetensors\" }", "{ name = \"b.safetensors\", text = \"x\" }", "can have no source"},
      {"/{name}@", "/b@", "'reference' must contain {name}"},
      {"kind = \"hub\"", "kind = \"url\"", "unknown key 'reference'"},
      {"[variants]\nsmall = { about = \"small\" }\n\"large_2026-10\" = { about = \"large\" }", "",
       "without 'variants'"},
  };
  for (const auto& [piece, by, words] : mistakes) {
    std::string text = good;
    const size_t at = text.find(piece);
    ASSERT_NE(at, std::string::npos) << piece;
    text.replace(at, std::string_view(piece).size(), by);
    const auto parsed = parse_catalogue(text, "bird.toml");
    ASSERT_FALSE(parsed) << by;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, HasSubstr(words)) << by;
  }
  std::string bomb = good;
  bomb +=
      "a = \"{b}{b}{b}{b}{b}{b}{b}{b}\"\nb = \"{c}{c}{c}{c}{c}{c}{c}{c}\"\nc = \"" + std::string(2000, 'x') + "\"\n";
  bomb.replace(bomb.find("size: {about}"), 13, "size: {a}");
  EXPECT_THAT(parse_catalogue(bomb, "bird.toml").error().message, HasSubstr("longer than 65536 bytes"));
  bomb.replace(bomb.find(std::string(2000, 'x')), 2000,
               "{d}{d}{d}{d}{d}{d}{d}{d}\"\nd = \"{e}{e}{e}{e}{e}{e}{e}{e}\"\ne = \"");
  EXPECT_THAT(parse_catalogue(bomb, "bird.toml").error().message, HasSubstr("more than 4096 values"));
}

}  // namespace
}  // namespace syrinx
