#include "models/llama/chat_outlines.h"

namespace syrinx::llama {
namespace {

constexpr char kPrompt[] = R"(if add_generation_prompt
= '<|im_start|>assistant\n'
endif
)";
constexpr char kSystemFirst[] = R"(if messages[0].role=='system'
= '<|im_start|>system\n'+messages[0].content+'<|im_end|>\n'
)";

// The body of the loop over messages.
constexpr char kMessage[] = R"(= '<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>\n'
)";

void add_plain_chatml(std::vector<KnownChat>& known) {
  const std::string each = "for message in messages\n";
  const std::string end = std::string("endfor\n") + kPrompt;
  known.push_back({each + kMessage + end, "ChatML", {}});
  const std::string by_role = R"(if message.role=='user'
= '<|im_start|>user\n'+message.content+'<|im_end|>\n'
elif message.role=='assistant'
= '<|im_start|>assistant\n'+message.content+'<|im_end|>\n'
else
= '<|im_start|>system\n'+message.content+'<|im_end|>\n'
endif
)";
  known.push_back({each + by_role + end, "ChatML", {}});
  const std::string system =
      "if loop.first and messages[0].role!='system'\n= '<|im_start|>system\\n\1<|im_end|>\\n'\nendif\n";
  known.push_back({each + system + kMessage + end, "ChatML", {.has_default_system = true}});
}

// Qwen2.5, and Qwen3 of July 2025, which does not think.
void add_qwen_chatml(std::vector<KnownChat>& known) {
  const std::string head = kSystemFirst;
  const std::string end = std::string("endif\nendfor\n") + kPrompt;
  const std::string system = "else\n= '<|im_start|>system\\n\1<|im_end|>\\n'\nendif\n";
  const std::string each = R"(for message in messages
if message.role=='user' or message.role=='system' and not loop.first or message.role=='assistant'
)";
  known.push_back(
      {head + system + each + kMessage + end, "Qwen2.5", {.needs_message = true, .has_default_system = true}});
  const std::string by_role = R"(endif
for message in messages
set content=message.content
if message.role=='user' or message.role=='system' and not loop.first
= '<|im_start|>'+message.role+'\n'+content+'<|im_end|>\n'
elif message.role=='assistant'
= '<|im_start|>'+message.role+'\n'+content+'<|im_end|>\n'
)";
  known.push_back(
      {head + by_role + end, "Qwen3 without thinking", {.maker = ChatMaker::kQwen3, .needs_message = true}});
}

void add_llama3(std::vector<KnownChat>& known) {
  const std::string opening = R"(= '<|start_header_id|>assistant<|end_header_id|>\n\n'
)";
  const std::string prompt = "if add_generation_prompt\n" + opening + "endif\n";
  const std::string first = R"(set loop_messages=messages
for message in loop_messages
set content='<|start_header_id|>'+message.role+'<|end_header_id|>\n\n'+message.content|trim+'<|eot_id|>'
if loop.first
set content=bos_token+content
endif
= content
endfor
)";
  const ChatForm form{.family = TemplateKind::kLlama3, .maker = ChatMaker::kLlama3};
  known.push_back({first + prompt, "Llama 3", form});
  known.push_back({first + opening, "Llama 3", form});
  known.back().form.always_prompts = true;
  const std::string dated = R"(if messages[0].role=='system'
set system_message=messages[0].content|trim
set messages=messages[1:]
else
set system_message=''
endif
= '<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: '+date_string+'\n\n'+system_message+'<|eot_id|>'
for message in messages
= '<|start_header_id|>'+message.role+'<|end_header_id|>\n\n'+message.content|trim+'<|eot_id|>'
endfor
)" + prompt;
  for (const bool uses_today : {false, true}) {
    std::string outline = "= bos_token\nset date_string=";
    outline += uses_today ? "strftime_now('%d %b %Y')\n" : "'\1'\n";
    known.push_back({outline + dated, "Llama 3", form});
    known.back().form.needs_message = known.back().form.has_dates = true;
    known.back().form.uses_today = uses_today;
  }
}

// The search for the last question of the user: the maker's, and one for engines without slices and methods.
constexpr char kSearch[] = R"(for message in messages[::-1]
set index=(messages|length-1)-loop.index0
if ns.multi_step_tool and message.role=='user' and not (message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>'))
)";
constexpr char kPlainSearch[] = R"(for forward_message in messages
set index=(messages|length-1)-loop.index0
set message=messages[index]
set current_content=message.content if message.content is defined and message.content is not none else ''
set tool_start='<tool_response>'
set tool_start_length=tool_start|length
set start_of_message=current_content[:tool_start_length]
set tool_end='</tool_response>'
set tool_end_length=tool_end|length
set start_pos=(current_content|length)-tool_end_length
if start_pos<0
set start_pos=0
endif
set end_of_message=current_content[start_pos:]
if ns.multi_step_tool and message.role=='user' and not (start_of_message==tool_start and end_of_message==tool_end)
)";

// The split of an answer into thoughts and text: the maker's first, its second, and two for other engines.
constexpr char kFirstSplit[] = R"(set content=message.content
set reasoning_content=''
if '</think>' in message.content
set content=message.content.split('</think>')[-1].lstrip('\n')
set reasoning_content=message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
endif
)";
constexpr char kSecondSplit[] = R"(set reasoning_content=''
if '</think>' in content
set reasoning_content=content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
set content=content.split('</think>')[-1].lstrip('\n')
endif
)";
constexpr char kPlainSplit[] =
    R"(set m_content=message.content if message.content is defined and message.content is not none else ''
set content=m_content
set reasoning_content=''
if '</think>' in m_content
set content=(m_content.split('</think>')|last).lstrip('\n')
set reasoning_content=(m_content.split('</think>')|first).rstrip('\n')
set reasoning_content=(reasoning_content.split('<think>')|last).lstrip('\n')
endif
)";

constexpr char kFilterSplit[] = R"(set reasoning_content=''
if '</think>' in content
set reasoning_content=((content.split('</think>')|first).rstrip('\n').split('<think>')|last).lstrip('\n')
set content=(content.split('</think>')|last).lstrip('\n')
endif
)";

constexpr char kThoughtPrompt[] = R"(if add_generation_prompt
= '<|im_start|>assistant\n<think>\n\n</think>\n\n'
endif
)";

struct Qwen3Spelling {
  std::string search, before, content, split, has_thought;
  bool opens_thought = true;
};

std::string outline_qwen3(const Qwen3Spelling& spelling) {
  return std::string(kSystemFirst) + R"(endif
set ns=namespace(multi_step_tool=true,last_query_index=messages|length-1)
)" + spelling.search +
         R"(set ns.multi_step_tool=false
set ns.last_query_index=index
endif
endfor
for message in messages
)" + spelling.before +
         R"(if message.role=='user' or message.role=='system' and not loop.first
= '<|im_start|>'+message.role+'\n'+)" +
         spelling.content + R"(+'<|im_end|>\n'
elif message.role=='assistant'
)" + spelling.split +
         "if loop.index0>ns.last_query_index\nif loop.last or not loop.last and " + spelling.has_thought + R"(
= '<|im_start|>'+message.role+'\n<think>\n'+reasoning_content.strip('\n')+'\n</think>\n\n'+content.lstrip('\n')
else
= '<|im_start|>'+message.role+'\n'+content
endif
else
= '<|im_start|>'+message.role+'\n'+content
endif
= '<|im_end|>\n'
endif
endfor
)" + (spelling.opens_thought ? kThoughtPrompt : kPrompt);
}

void add_qwen3(std::vector<KnownChat>& known) {
  const std::string set_content = "set content=message.content\n";
  const Qwen3Spelling spellings[] = {
      {kSearch, "", "message.content", kFirstSplit, "reasoning_content"},
      {kSearch, set_content, "content", kSecondSplit, "reasoning_content"},
      {kSearch, set_content, "content", kFilterSplit, "reasoning_content", false},
      {kPlainSearch, "", "message.content", kPlainSplit, "not reasoning_content.strip()==''"}};
  for (const Qwen3Spelling& spelling : spellings)
    known.push_back({outline_qwen3(spelling),
                     "Qwen3",
                     {.family = TemplateKind::kQwen3,
                      .maker = ChatMaker::kQwen3,
                      .needs_message = true,
                      .opens_thought = spelling.opens_thought}});
  known.back().form.skips_blank_thoughts = true;
}

}  // namespace

const std::vector<KnownChat>& known_chats() {
  static const std::vector<KnownChat> forms = [] {
    std::vector<KnownChat> known;
    add_plain_chatml(known);
    add_qwen_chatml(known);
    add_llama3(known);
    add_qwen3(known);
    return known;
  }();
  return forms;
}

}  // namespace syrinx::llama
