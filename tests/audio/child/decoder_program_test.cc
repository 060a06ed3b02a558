#include "audio/child/decoder_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;
using testing::Not;
using testing::StartsWith;

class DecoderProgram : public testing::Test {
 protected:
  // The finder where an installed program would be.
  void SetUp() override {
    fs::create_directories(at("usr/bin"));
    fs::copy_file(SYRINX_FIND_DECODER, at("usr/bin/find"));
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  void place(const std::string& name) {
    fs::create_directories(fs::path(at(name)).parent_path());
    write_text(at(name), "#!/bin/sh\n");
    fs::permissions(at(name), fs::perms::owner_all);
  }
  std::string found(const std::string& before, const std::string& after = "") const {
    const std::string command = before + " " + at("usr/bin/find") + after;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string line(1000, '\0');
    EXPECT_NE(std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()), nullptr);
    return line.substr(0, line.find('\n'));
  }
  const TempFolder folder_;
};

TEST_F(DecoderProgram, NearestPlaceIsFirst) {
  EXPECT_THAT(found("SYRINX_DECODE="), Not(StartsWith(folder_.path())));
  for (const char* const name :
       {"libexec/syrinx/syrinx-decode", "usr/libexec/syrinx/syrinx-decode", "usr/bin/syrinx-decode"}) {
    place(name);
    EXPECT_EQ(found("SYRINX_DECODE="), at(name));
  }
  EXPECT_EQ(found("SYRINX_DECODE=/other"), "/other");
}

// By an upgrade, while it runs.
TEST_F(DecoderProgram, ReplacedProgramFindsItsDecoder) {
  place("usr/bin/syrinx-decode");
  EXPECT_EQ(found("SYRINX_DECODE=", " replaced"), at("usr/bin/syrinx-decode"));
  EXPECT_FALSE(fs::exists(at("usr/bin/find")));
}

}  // namespace
}  // namespace syrinx
