"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const followColorScheme = () => {
  document.documentElement.classList.toggle("dark-mode", dark.matches);
};
dark.addEventListener("change", followColorScheme);
followColorScheme();

/* The document with other ids in its examples, wherever such an id is the whole text, and
   with the `credentialValues` that belong to the ids. */
const VALUES = "credentialValues";
const withIds = (value, ids) => {
  if (typeof value === "string") {
    return Object.hasOwn(ids, value) ? ids[value] : value;
  }
  if (Array.isArray(value)) {
    return value.map((item) => withIds(item, ids));
  }
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        (name === VALUES && ids[VALUES]) || withIds(item, ids),
      ]),
    );
  }
  return value;
};

/* Swagger UI leaves some of its fields without a name for screen readers. */
const nameOf = (field) => {
  if (field.id === "servers") {
    return "Server";
  }
  const parameter = field.closest("[data-param-name]");
  if (parameter) {
    return parameter.dataset.paramName;
  }
  if (field.matches("textarea")) {
    return "Request body";
  }
  return field.closest(".examples-select") ? "Example" : "Media type";
};

const nameFields = (page) => {
  for (const field of page.querySelectorAll(":is(select, textarea, input):not([aria-label])")) {
    if (!field.labels?.length || field.id === "servers") {
      field.setAttribute("aria-label", nameOf(field));
    }
  }
  /* A link inside of the button that opens an operation. */
  for (const link of page.querySelectorAll("a.nostyle[href]")) {
    link.removeAttribute("href");
  }
};

/* What ends something stands last in its group, and what ends all of a kind behind it. */
const rank = (operation) => {
  const isDelete = operation.get("method") === "delete";
  return Number(isDelete) + Number(isDelete && !operation.get("path").endsWith("}"));
};

const read = async (url) => (await fetch(url)).json();

const show = async () => {
  const page = document.querySelector("#swagger-ui");
  const [document_, ids] = await Promise.all([
    read(page.dataset.openapi),
    read(page.dataset.examples),
  ]);
  document_.servers = [{ url: page.dataset.server || "/" }];
  new MutationObserver(() => nameFields(page)).observe(page, { childList: true, subtree: true });
  SwaggerUIBundle({
    spec: withIds(document_, ids),
    domNode: page,
    presets: [SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "none",
    operationsSorter: (one, other) => rank(one) - rank(other),
    displayRequestDuration: true,
    persistAuthorization: false,
  });
};

show();
