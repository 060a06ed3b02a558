// A chat template and a conversation, or a conversation by a known template: recognised or refused with one sentence;
// what is rendered has the contents apart from the tokens.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "models/llama/chat_template.h"

namespace {

using syrinx::llama::ChatPart;
using syrinx::llama::ChatTemplate;
using syrinx::text::ChatMessage;
using syrinx::text::ChatRole;

constexpr std::string_view kKnown[] = {
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' %}{% if loop.first %}"
    "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}",
    "{% if messages[0].role == 'system' %}{{ '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}"
    "{% endif %}{% set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}"
    "{% for message in messages[::-1] %}{% set index = (messages|length - 1) - loop.index0 %}"
    "{% if ns.multi_step_tool and message.role == 'user' and not(message.content.startswith('<tool_response>') and "
    "message.content.endswith('</tool_response>')) %}{% set ns.multi_step_tool = false %}"
    "{% set ns.last_query_index = index %}{% endif %}{% endfor %}{% for message in messages %}"
    "{% set content = message.content %}{% if message.role == 'user' or message.role == 'system' and not loop.first %}"
    "{{ '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}{% elif message.role == 'assistant' %}"
    "{% set reasoning_content = '' %}{% if '</think>' in content %}{% set reasoning_content = "
    "content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}"
    "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{% if loop.index0 > ns.last_query_index %}{% if loop.last or (not loop.last and reasoning_content) %}"
    "{{ '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + "
    "content.lstrip('\n') }}{% else %}{{ '<|im_start|>' + message.role + '\n' + content }}{% endif %}{% else %}"
    "{{ '<|im_start|>' + message.role + '\n' + content }}{% endif %}{{ '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n\n</think>\n\n' }}{% endif %}"};

// Each piece up to a zero byte is a message, its first byte the role.
std::vector<ChatMessage> read_messages(std::string_view text) {
  std::vector<ChatMessage> messages;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find('\0'));
    text.remove_prefix(piece.size() < text.size() ? piece.size() + 1 : piece.size());
    if (piece.empty()) continue;
    const ChatRole role = piece[0] == 's'   ? ChatRole::kSystem
                          : piece[0] == 'a' ? ChatRole::kAssistant
                                            : ChatRole::kUser;
    messages.push_back({role, std::string(piece.substr(1))});
  }
  return messages;
}

void check_sentence(const syrinx::Error& error) {
  SYRINX_CHECK(!error.message.empty() && error.message.size() < 1000);
  SYRINX_CHECK(error.message.find('\n') == std::string::npos);
}

void check_parts(const ChatTemplate& chat, const std::vector<ChatPart>& parts) {
  const auto tokens = chat.tokens();
  for (size_t i = 0; i < parts.size(); ++i) {
    SYRINX_CHECK(!parts[i].text.empty());
    if (parts[i].is_token)
      SYRINX_CHECK(std::find(tokens.begin(), tokens.end(), parts[i].text) != tokens.end());
    else
      SYRINX_CHECK(i == 0 || parts[i - 1].is_token);
  }
}

}  // namespace

// The first byte: 0 to 2 a template of kKnown, else the template stands in front of the first zero byte.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string_view jinja;
  if (data[0] < std::size(kKnown)) {
    jinja = kKnown[data[0]];
  } else {
    jinja = text.substr(0, text.find('\0'));
    text.remove_prefix(jinja.size());
  }
  const auto chat = ChatTemplate::recognise(jinja, "fuzz");
  if (!chat) {
    SYRINX_CHECK(data[0] >= std::size(kKnown));
    check_sentence(chat.error());
    return 0;
  }
  const std::vector<ChatMessage> messages = read_messages(text);
  for (const bool prompt : {false, true}) {
    const auto parts = chat->render(messages, prompt, "05 Jul 2026");
    if (parts)
      check_parts(*chat, *parts);
    else
      check_sentence(parts.error());
  }
  return 0;
}
