// Keys of every page: j and k move, / searches, Enter there goes to the first match, u goes back, ? shows the keys.

/** Switch buttons off (id -> whether); the focus of one goes to the first of them that is left. */
function switchOff(buttons) {
  const focused = document.activeElement;
  const all = Object.entries(buttons).map(([id, off]) => {
    const button = document.getElementById(id);
    button.disabled = off;
    return button;
  });
  if (focused?.disabled) all.find((button) => !button.disabled)?.focus();
}

{
  const dialog = document.getElementById("keys");
  const links = () => [...document.querySelectorAll("[data-move] a[href], a[data-move]")]
    .filter((link) => link.checkVisibility());

  const move = (by) => {
    const all = links();
    const at = all.indexOf(document.activeElement);
    all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by]?.focus();
  };
  /** Follow the link to the next page; where there is none, go to the next link of a list. */
  const go = (name, by) => {
    const link = document.querySelector(`[data-${name}]`);
    if (link) link.click();
    else move(by);
  };
  /** Go from the search to the first link of its matches, once they are shown. */
  const toFirstOf = (event) => {
    event.preventDefault(); // of a form that would be sent, and the page read anew without its words
    event.target.blur(); // after which a list may be made anew
    const list = document.getElementById(event.target.getAttribute("aria-controls"));
    requestAnimationFrame(() => links().find((link) => list?.contains(link))?.focus());
  };
  const actions = {
    j: () => go("next", 1),
    k: () => go("earlier", -1),
    u: () => [...document.querySelectorAll("[data-up]")].at(-1)?.click(),
    "/": () => document.querySelector("input[type=search]")?.focus(),
    "?": () => dialog.showModal(),
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter" && event.target.type === "search") toFirstOf(event);
      return;
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
