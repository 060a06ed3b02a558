#include "engine/chat/chat_family.h"

namespace syrinx {

Status check_precision(const ChatFamily& family, Precision precision) {
  return check_precision(precision, family.precisions, family.title);
}

}  // namespace syrinx
