"use strict";

// A search field and the list of what it finds, as one combobox: the list stays open below the field, and the
// arrow keys lead from one to the other. Without scripts both are ordinary fields, and a button searches.
const MAX_SHOWN = 6;

function list() {
  return document.getElementById("id_connection_id");
}

function openList() {
  const select = list();
  if (select) select.size = Math.max(2, Math.min(MAX_SHOWN, select.options.length));
}

function prepareField(field) {
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-expanded", "true");
  field.setAttribute("aria-controls", list().id);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();  // Enter must not send a form whose list is about to change
    list().focus();
  });
}

for (const one of document.querySelectorAll("[data-chooser]")) {
  prepareField(one.querySelector("input"));
  one.querySelector("button").hidden = true;
}
openList();
document.addEventListener("htmx:afterSwap", openList);
