// Keys of every page: j and k move, / searches, u goes back, ? shows the keys.

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
      return;
    }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
