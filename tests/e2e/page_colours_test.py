"""The page's colours in a real Chromium: light and dark, at 320 pixels, on a phone and on a desk.

SYRINX_PICTURES is a folder that the pictures are kept in, for somebody to look at."""
import os
import pathlib
import re
import unittest

from page_test import Page

# Everything that may be hidden is shown, and what may say something says it; disabled controls are nobody's to read.
SHOW_ALL = """
document.querySelectorAll('[hidden]').forEach((each) => { each.hidden = false; });
document.querySelectorAll('.fault, [role=status]').forEach((each) => { each.textContent ||= 'Words.'; });
document.querySelectorAll(':disabled').forEach((each) => { each.disabled = false; });
document.querySelectorAll('[aria-disabled]').forEach((each) => { each.removeAttribute('aria-disabled'); });
document.querySelectorAll('#talked li').forEach((line) => line.remove());
for (const kind of ['', 'live', 'spoken', 'interrupted']) {
  const line = document.createElement('li');
  line.dataset.kind = kind;
  line.textContent = 'Words that were said.';
  document.querySelector('#talked ol').append(line);
}
document.getElementById('key-dialog').show();
"""
# Of each text, field and button the colour, that of its ground, which is the first below it that is not transparent,
# that of its edge, and that of the ground around it.
COLOURS = """
const opaque = (colour) => !/, 0\\)$/.test(colour);
const ground = (element) => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (opaque(colour)) return colour;
  }
};
const found = [];
const note = (element, part, isControl) => {
  const style = getComputedStyle(element, part);
  const own = part && opaque(style.backgroundColor) ? style.backgroundColor : ground(element);
  found.push({name: element.id || element.className || element.tagName, part: part ?? '', isControl,
              ink: style.color, ground: own, edge: style.borderTopColor, around: ground(element.parentElement)});
};
for (const each of document.querySelectorAll('body *')) {
  const isField = each.matches('input, textarea, select');
  const words = [...each.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const speaks = isField || words.length > 0;
  if (!speaks || !each.checkVisibility() || each.matches('option')) continue;
  note(each, null, isField || each.matches('button'));
  if (each.type === 'file') note(each, '::file-selector-button', false);
  if (/^".+"/.test(getComputedStyle(each, '::before').content)) note(each, '::before', false);
}
return found;
"""


def lightness(colour):
    """Relative luminance, as WCAG 2 has it."""
    parts = [int(part) / 255 for part in re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", colour).groups()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted((lightness(one), lightness(other)))
    return (light + 0.05) / (dark + 0.05)


class Colours(Page):
    def look(self, width, dark):
        """All of the page at once."""
        self.browser.look((width, 800), dark)
        height = self.browser.run("return document.documentElement.scrollHeight")
        self.browser.look((width, height), dark)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)

    def keep(self, name):
        if "SYRINX_PICTURES" in os.environ:
            self.browser.picture(pathlib.Path(os.environ["SYRINX_PICTURES"]) / f"{name}.png")

    def colours(self, picture, prepare=""):
        """By scheme, of what the page shows; all of it can be read."""
        found = {}
        self.browser.run(prepare)
        for device, width in (("narrow", 320), ("phone", 390), ("desk", 1280)):
            for scheme in ("light", "dark"):
                self.look(width, scheme == "dark")
                self.keep(f"{device}_{scheme}_{picture}")
                found[scheme] = self.browser.run(prepare + COLOURS)  # at once: the page itself takes a fault back
                for each in found[scheme]:
                    self.assertGreaterEqual(contrast(each["ink"], each["ground"]), 4.5, (scheme, each))
                    if each["isControl"]:
                        edge = max(contrast(each[colour], each["around"]) for colour in ("edge", "ground"))
                        self.assertGreaterEqual(edge, 3, (scheme, each))
        return found["light"], found["dark"]

    def test_every_text_can_be_read_in_light_and_dark(self):
        self.start_recogniser()
        self.open_page()
        self.wait_for_text("#slots", "slots busy")
        self.colours("fresh")
        in_light, in_dark = self.colours("all", SHOW_ALL)
        for light, dark in zip(in_light, in_dark, strict=True):
            self.assertEqual((light["name"], light["part"]), (dark["name"], dark["part"]))
            self.assertNotEqual(light["ink"], dark["ink"], light)
            self.assertGreater(lightness(light["around"]), 0.5, light)
            self.assertLess(lightness(dark["around"]), 0.1, dark)
        plain = ("text", "say", "speak-fault", "talk-told", "ready", "errors", "key", "A")
        wanted = {*((name, "") for name in plain), ("clone-file", "::file-selector-button"), ("LI", "::before")}
        self.assertLessEqual(wanted, {(each["name"], each["part"]) for each in in_light})


if __name__ == "__main__":
    unittest.main()
