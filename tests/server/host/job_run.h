// Shared by the tests of a slot's job: a log in a file, and the blocks of its answer put together.
#pragma once

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "server/host/request_log.h"
#include "server/host/slot_job.h"
#include "server/http/reply_stream.h"

namespace syrinx::server {

// Text that `run` writes to the log, which is whole when this returns.
inline std::string logged(const std::string& path, const std::function<void(RequestLog&)>& run) {
  FILE* const file = std::fopen(path.c_str(), "w");
  {
    RequestLog log(::fileno(file));
    EXPECT_TRUE(log.start());
    run(log);
  }
  std::fclose(file);
  std::ifstream lines(path);
  return {std::istreambuf_iterator<char>(lines), {}};
}

// The whole life of a job, which waits for nothing.
inline void run_whole(SlotJob& job) {
  SlotWatch watch(system_clock());
  job.run(watch);
  EXPECT_EQ(watch.waiting_s(), 0);
  job.end();
}

inline std::string sent_bytes(ReplyStream& reply) {
  std::string sent;
  for (ReplyStream::Block block; reply.try_pop(block);)
    sent.append(reinterpret_cast<const char*>(block.data()), block.size());
  return sent;
}

}  // namespace syrinx::server
