// Buttons that do nothing for a while, words that change, and files that are given.

// Not `disabled`: browsers take the focus from who is, and the next press of the keyboard would go nowhere.
export function setResting(button, rests) {
  button.setAttribute("aria-disabled", String(rests));
}

export const isResting = (button) => button.getAttribute("aria-disabled") === "true";

// What already says so is left alone: screen readers read what is written anew again.
export function setWords(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

export function giveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
