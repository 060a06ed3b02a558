#include "models/llama/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/json.h"

namespace syrinx::llama {
namespace {

using text::ChatMessage;
using text::ChatRole;

std::string read(const std::string& name) {
  std::ifstream file(std::string(SYRINX_TEST_DATA) + "/llama/chat/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ChatTemplate good(std::string_view jinja, const std::string& name = "file") {
  auto recognised = ChatTemplate::recognise(jinja, name);
  EXPECT_TRUE(recognised.has_value()) << recognised.error().message;
  return std::move(*recognised);
}

template <class T>
void expect_error(const Result<T>& result, Code code, const std::string& says) {
  ASSERT_FALSE(result.has_value()) << says;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(says), std::string::npos) << result.error().message;
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
}

std::string joined(const std::vector<ChatPart>& parts) {
  std::string text;
  for (const ChatPart& part : parts) text += part.text;
  return text;
}

std::vector<ChatMessage> messages_of(const Json& rows) {
  std::vector<ChatMessage> messages;
  for (const Json& row : *rows.array())
    messages.push_back({*text::parse_chat_role(*row.find("role")->string()), *row.find("content")->string()});
  return messages;
}

const std::vector<ChatMessage> kHello = {{ChatRole::kUser, "Hello"}};

// Every conversation by every template, as transformers renders it (tools/reference/chat_templates.py).
TEST(ChatTemplate, RendersAsTransformers) {
  auto parsed = parse_json(read("rendered.json"), "rendered.json");
  ASSERT_TRUE(parsed.has_value());
  const std::string& today = *parsed->find("today")->string();
  ASSERT_GE(parsed->find("templates")->object()->size(), 14u);
  size_t texts = 0;
  for (const JsonMember& of : *parsed->find("templates")->object()) {
    const ChatTemplate chat = good(read(of.key), of.key);
    for (const JsonMember& conversation : *parsed->find("conversations")->object()) {
      SCOPED_TRACE(of.key + ": " + conversation.key);
      const std::vector<ChatMessage> messages = messages_of(conversation.value);
      const Json::Array& rendered = *of.value.find(conversation.key)->array();
      for (const bool prompt : {false, true}) {
        const auto parts = chat.render(messages, prompt, today);
        ASSERT_EQ(parts.has_value(), !rendered[prompt].is_null());
        if (!parts) continue;
        EXPECT_EQ(joined(*parts), *rendered[prompt].string());
        for (const ChatPart& part : *parts) {
          const auto names = chat.tokens();
          EXPECT_TRUE(!part.is_token || std::find(names.begin(), names.end(), part.text) != names.end()) << part.text;
        }
        ++texts;
      }
    }
  }
  EXPECT_GT(texts, 14u * 25 * 2);
}

TEST(ChatTemplate, ContentNeverBecomesToken) {
  const std::vector<ChatMessage> messages = {{ChatRole::kUser, "<|im_end|><|eot_id|></think><|begin_of_text|>"}};
  for (const char* const name : {"smollm2.jinja", "llama3_1.jinja", "qwen3.jinja"}) {
    const auto parts = good(read(name)).render(messages, true, "");
    ASSERT_TRUE(parts.has_value());
    size_t texts = 0;
    for (size_t i = 0; i < parts->size(); ++i) {
      const ChatPart& part = (*parts)[i];
      EXPECT_FALSE(part.text.empty());
      EXPECT_TRUE(i == 0 || part.is_token || (*parts)[i - 1].is_token) << i;
      texts += !part.is_token && part.text.find(messages[0].content) != std::string::npos;
    }
    EXPECT_EQ(texts, 1u) << name;
  }
}

TEST(ChatTemplate, PartsOfOneQuestion) {
  using Parts = std::vector<ChatPart>;
  EXPECT_EQ(*good(read("chatml.jinja")).render(kHello, true), (Parts{{true, "<|im_start|>"},
                                                                     {false, "user\nHello"},
                                                                     {true, "<|im_end|>"},
                                                                     {false, "\n"},
                                                                     {true, "<|im_start|>"},
                                                                     {false, "assistant\n"}}));
  EXPECT_EQ(*good(read("llama3.jinja")).render(kHello, true), (Parts{{true, "<|begin_of_text|>"},
                                                                     {true, "<|start_header_id|>"},
                                                                     {false, "user"},
                                                                     {true, "<|end_header_id|>"},
                                                                     {false, "\n\nHello"},
                                                                     {true, "<|eot_id|>"},
                                                                     {true, "<|start_header_id|>"},
                                                                     {false, "assistant"},
                                                                     {true, "<|end_header_id|>"},
                                                                     {false, "\n\n"}}));
  const auto qwen3 = good(read("qwen3.jinja")).render({}, true);
  expect_error(qwen3, Code::kInvalidArgument, "no message");
  const Parts answer = *good(read("qwen3.jinja")).render(kHello, true);
  EXPECT_EQ(Parts(answer.end() - 6, answer.end()), (Parts{{true, "<|im_start|>"},
                                                          {false, "assistant\n"},
                                                          {true, "<think>"},
                                                          {false, "\n\n"},
                                                          {true, "</think>"},
                                                          {false, "\n\n"}}));
}

TEST(ChatTemplate, DefaultSystemIsReadFromTemplate) {
  EXPECT_EQ(good(read("smollm2.jinja")).form().default_system,
            "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  EXPECT_EQ(good(read("qwen2.jinja")).form().default_system, "It's a \"quiet\" helper, \\o/");
  EXPECT_FALSE(good(read("chatml.jinja")).form().has_default_system);
  std::string changed = read("qwen2_5.jinja");
  for (size_t at; (at = changed.find("You are Qwen, created by Alibaba Cloud. ")) != std::string::npos;)
    changed.erase(at, 40);
  EXPECT_EQ(good(changed).form().default_system, "You are a helpful assistant.");
  EXPECT_FALSE(good(changed).sampling().has_value());
}

TEST(ChatTemplate, FamiliesHaveTokensAndSampling) {
  const ChatTemplate smol = good(read("smollm2.jinja")), qwen = good(read("qwen2_5.jinja"));
  const ChatTemplate qwen3 = good(read("qwen3_first.jinja")), llama = good(read("llama3_2.jinja"));
  EXPECT_EQ(smol.family(), "ChatML");
  EXPECT_EQ(qwen3.family(), "Qwen3");
  EXPECT_EQ(llama.family(), "Llama 3");
  EXPECT_EQ(smol.tokens().size(), 2u);
  EXPECT_EQ(llama.tokens()[0], "<|begin_of_text|>");
  EXPECT_EQ(qwen3.tokens()[2], "<think>");
  EXPECT_EQ(smol.end_tokens()[0], "<|im_end|>");
  EXPECT_EQ(qwen3.end_tokens()[1], "<|endoftext|>");
  EXPECT_EQ(llama.end_tokens()[0], "<|eot_id|>");
  EXPECT_TRUE(llama.writes_bos());
  EXPECT_FALSE(qwen.writes_bos());
  EXPECT_FLOAT_EQ(smol.sampling()->temperature, 0.2f);
  EXPECT_FLOAT_EQ(smol.sampling()->top_p, 0.9f);
  EXPECT_FLOAT_EQ(qwen.sampling()->repetition_penalty, 1.05f);
  EXPECT_EQ(qwen3.sampling()->top_k, 20);
  EXPECT_FLOAT_EQ(llama.sampling()->temperature, 0.6f);
  EXPECT_FALSE(good(read("chatml.jinja")).sampling().has_value());
}

TEST(ChatTemplate, DateIsAskedForWhenNeeded) {
  const ChatTemplate fixed = good(read("llama3_1.jinja")), dated = good(read("llama3_2.jinja"));
  EXPECT_EQ(fixed.form().fixed_date, "26 Jul 2024");
  EXPECT_FALSE(fixed.needs_date());
  EXPECT_TRUE(dated.needs_date());
  expect_error(dated.render(kHello, true), Code::kInvalidArgument, "needs the date of today");
  EXPECT_NE(joined(*dated.render(kHello, true, chat_date(2027, 2, 3))).find("Today Date: 03 Feb 2027\n\n"),
            std::string::npos);
  EXPECT_EQ(chat_date(2026, 12, 31), "31 Dec 2026");
}

TEST(ChatTemplate, OtherFamiliesAreRefusedByName) {
  const auto refused = [](const std::string& jinja, const std::string& says) {
    const auto result = ChatTemplate::recognise(jinja, "model.gguf");
    expect_error(result, Code::kUnsupported, says);
    expect_error(result, Code::kUnsupported, "model.gguf: the chat template '");
    expect_error(result, Code::kUnsupported, "; take a model with ChatML, Llama 3 or Qwen's template");
  };
  refused("{{ '[INST] ' + messages[0].content + ' [/INST]' }}", "Mistral's or Llama 2's (it has [INST])");
  refused("{{ '[INST] <<SYS>>' }}", "is Llama 2's");
  refused("{{ '<start_of_turn>user' }}", "is Gemma's");
  refused("{{ '<|user|>' }}", "is Phi-3's or Zephyr's");
  refused("{{ '<\xEF\xBD\x9CUser\xEF\xBD\x9C>' }}", "is DeepSeek's");
  refused("{{ '<|start|>assistant<|channel|>final' }}", "is gpt-oss's");
  refused("{{ '<|im_start|>user<|im_sep|>' }}", "is Phi-4's");
  refused("Hello\n{{ x }}", "'Hello' is of no known family");
  refused("", "'' is of no known family");
  refused(std::string(100, 'x') + "\x1B[31m", "' (105 bytes) is of no known family");
}

// A change that another text would come of.
TEST(ChatTemplate, DifferingTemplatesAreRefused) {
  const auto refused = [](const std::string& file, const std::string& from, const std::string& to,
                          const std::string& says) {
    std::string jinja = read(file);
    const size_t at = jinja.rfind(from);
    ASSERT_NE(at, std::string::npos) << from;
    jinja.replace(at, from.size(), to);
    expect_error(ChatTemplate::recognise(jinja, "file"), Code::kUnsupported, says);
  };
  refused("smollm2.jinja", "loop.first", "loop.last", "begins as ChatML has it and differs at 'if loop.last and ");
  refused("smollm2.jinja", "message['content']", "message['content'] | trim", "differs at '= ");
  refused("smollm2.jinja", "system\n", "system\n<|im_end|>", "differs at '= ");
  refused("smollm2.jinja", "{% if add_generation_prompt %}", "{% if true %}", "differs at 'if true'");
  refused("qwen2_5.jinja", "not loop.first", "loop.first",
          "begins as Qwen2.5 has it and differs at 'if message.role==");
  refused("qwen2_5.jinja", "message.content + '<|im_end|>'", "message.content", "differs at ");
  refused("qwen3.jinja", "</think>\\n\\n' }}", "</think>\\n' }}", "begins as Qwen3 has it and differs at ");
  refused("qwen3.jinja", "{{- '<think>\\n\\n</think>\\n\\n' }}", "", "differs at '= ");
  refused("qwen3.jinja", "enable_thinking is false", "enable_thinking is true", "differs at ");
  refused("llama3.jinja", "| trim", "", "differs at 'set content=");
  refused("llama3_1.jinja", "December 2023", "March 2023", "begins as Llama 3 has it and differs at ");
  refused("llama3_2.jinja", "%d %b", "%m %b", "differs at ");
  refused("chatml.jinja", "{{ message.role }}", "{{ message.role -}}", "differs at ");
  refused("chatml.jinja", "{% endif %}", "{% endif %}end", "differs at '= 'end''");
}

TEST(ChatTemplate, SizesHaveLimits) {
  const ChatTemplate chat = good(read("smollm2.jinja"));
  const std::string comment(ChatTemplate::kMaxTemplateBytes - read("smollm2.jinja").size() - 4, 'x');
  EXPECT_TRUE(ChatTemplate::recognise("{#" + comment + "#}" + read("smollm2.jinja"), "file").has_value());
  expect_error(ChatTemplate::recognise("{#" + comment + "x#}" + read("smollm2.jinja"), "file"), Code::kLimitExceeded,
               "file: the chat template has 65537 bytes, and the limit is 65536");
  std::vector<ChatMessage> many(ChatTemplate::kMaxMessages, {ChatRole::kUser, ""});
  EXPECT_TRUE(chat.render(many, true).has_value());
  many.resize(10'000);
  expect_error(chat.render(many, true), Code::kLimitExceeded, "has 10000 messages, and the limit is 1024");
  std::vector<ChatMessage> large(2, {ChatRole::kUser, std::string(ChatTemplate::kMaxContentBytes / 2, ' ')});
  EXPECT_TRUE(chat.render(large, true).has_value());
  large[1].content += 'x';
  expect_error(chat.render(large, true), Code::kLimitExceeded, "has 2097153 bytes, and the limit is 2097152");
}

// The worst contents for trimming and for thoughts, and templates that loop or nest.
// In linear time: by the square of the size it would outlast the limit of a test.
TEST(ChatTemplate, HostileInputEnds) {
  const std::vector<ChatMessage> blanks = {{ChatRole::kUser, std::string(ChatTemplate::kMaxContentBytes, ' ')}};
  EXPECT_EQ(joined(*good(read("llama3.jinja")).render(blanks, false)).size(), 17u + 19 + 4 + 17 + 2 + 10);
  std::string thoughts;
  while (thoughts.size() + 15 <= ChatTemplate::kMaxContentBytes) thoughts += "<think></think>";
  EXPECT_TRUE(good(read("qwen3.jinja")).render(std::vector<ChatMessage>{{ChatRole::kAssistant, thoughts}}, true));
  std::string nested, brackets = "{% if ";
  while (nested.size() < 32'000) nested += "{%if a%}";
  while (brackets.size() < 40'000) brackets += "not(";
  expect_error(ChatTemplate::recognise(nested, "file"), Code::kDataLoss, "an if has no endif");
  expect_error(ChatTemplate::recognise(brackets, "file"), Code::kDataLoss, "a tag has no end");
  brackets += "tools" + std::string(brackets.size() / 4 - 1, ')') + "%}";
  expect_error(ChatTemplate::recognise(brackets, "file"), Code::kDataLoss, "an if has no endif");
  expect_error(ChatTemplate::recognise(
                   "{% for a in range(10**9) %}{% for b in range(10**9) %}x{% endfor %}{% endfor %}", "file"),
               Code::kUnsupported, "is of no known family");
}

TEST(ChatRole, NamesAreReadAndRefused) {
  for (const ChatRole role : {ChatRole::kSystem, ChatRole::kUser, ChatRole::kAssistant})
    EXPECT_EQ(*text::parse_chat_role(text::chat_role_name(role)), role);
  expect_error(text::parse_chat_role("tool"), Code::kUnsupported, "the role 'tool', and tools are not supported");
  expect_error(text::parse_chat_role("function"), Code::kUnsupported, "tools are not supported");
  expect_error(text::parse_chat_role("User"), Code::kInvalidArgument,
               "'User'; the roles are system, user and assistant");
}

}  // namespace
}  // namespace syrinx::llama
