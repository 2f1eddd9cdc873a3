"use strict";

// A form with `data-passkey` is sent with what the device answers: `create` makes a passkey, `get` asks for one.
const known = "PublicKeyCredential" in window;

function bytes(text) {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}

function text(buffer) {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function readOptions(form) {
  const options = JSON.parse(form.dataset.options);
  options.challenge = bytes(options.challenge);
  if (options.user) options.user.id = bytes(options.user.id);
  for (const name of ["excludeCredentials", "allowCredentials"]) {
    options[name] = (options[name] || []).map((one) => ({ ...one, id: bytes(one.id) }));
  }
  return options;
}

async function askDevice(form) {
  const made = await navigator.credentials[form.dataset.passkey]({ publicKey: readOptions(form) });
  const response = { clientDataJSON: text(made.response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (made.response[name]) response[name] = text(made.response[name]);
  }
  const { id, type } = made;
  form.elements.credential.value = JSON.stringify({ id, rawId: text(made.rawId), type, response });
  form.submit();
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-passkey]")) return;
  event.preventDefault();
  askDevice(event.target).catch(() => {});  // the owner thought better of it
});

function offerPasskeys() {
  for (const form of document.querySelectorAll("[data-passkey]")) form.hidden = !known;
  for (const note of document.querySelectorAll("[data-without-passkeys]")) note.hidden = known;
}

offerPasskeys();
