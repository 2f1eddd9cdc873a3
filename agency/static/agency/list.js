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
});
