"use strict";

// An error of a list that is swapped is shown as a page of its own, as without scripts.
document.addEventListener("htmx:responseError", (event) => {
  location.assign(event.detail.pathInfo.finalRequestPath);
});
document.addEventListener("htmx:sendError", () => {
  const note = document.createElement("p");
  note.className = "note error";
  note.textContent = "Agency could not be reached. Check your connection, then try again.";
  document.getElementById("messages").replaceChildren(note);
});
document.addEventListener("htmx:afterSwap", () => {
  prepareCopyButtons();
  showTimes();
  prepareTicks();
});

// One box ticks all rows of the page, and the buttons say how many are ticked.
function prepareTicks() {
  const all = document.querySelector("[data-ticks-all]");
  if (!all) return;
  const boxes = [...document.querySelectorAll("input[name=chosen]")];
  const told = document.querySelector("[data-ticked]");
  const count = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    all.checked = ticked === boxes.length;
    all.indeterminate = ticked > 0 && !all.checked;
    told.textContent = ticked ? `${ticked} ticked:` : "Tick rows above, then:";
  };
  for (const box of boxes) box.addEventListener("change", count);
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    count();
  });
  all.closest("[hidden]").hidden = false;
  keepTicks(boxes);
  count();
}

// Who comes back from the page of the ticked rows finds them ticked, until something was done with them.
function keepTicks(boxes) {
  const name = `ticks:${location.pathname}`;
  const kept = (sessionStorage.getItem(name) || "").split(" ");
  sessionStorage.removeItem(name);
  if (!document.querySelector("#messages > *"))
    for (const box of boxes) box.checked ||= kept.includes(box.value);
  boxes[0].form.addEventListener("submit", () => {
    const ticked = boxes.filter((box) => box.checked).map((box) => box.value);
    sessionStorage.setItem(name, ticked.join(" "));
  });
}

prepareTicks();
