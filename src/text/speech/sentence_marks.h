// Marks that end sentences and clauses, and those that close quotations and brackets behind them.
#pragma once

namespace syrinx::text {

// In scripts without blanks: whatever follows, a sentence or clause has ended.
constexpr bool ends_wide_sentence(char32_t c) { return c == U'。' || c == U'！' || c == U'？' || c == U'｡'; }
constexpr bool ends_wide_clause(char32_t c) {
  return c == U'，' || c == U'、' || c == U'；' || c == U'：' || c == U'､';
}
constexpr bool is_closer(char32_t c) {
  if (c == U'」' || c == U'』' || c == U'）' || c == U'】' || c == U'》') return true;
  return c == '"' || c == '\'' || c == ')' || c == ']' || c == '}' || c == U'”' || c == U'’' || c == U'»';
}

}  // namespace syrinx::text
