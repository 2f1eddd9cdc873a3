"use strict";

// Fills a field with what a code before the camera says, and sends its form. Nothing of the picture leaves the
// browser. Where that cannot read codes, a library is loaded once the camera is started (barcode/LICENSE.txt).
const EVERY_MS = 250;
const FORMATS = ["qr_code"];

async function scan(place) {
  const [button] = place.querySelectorAll("button");
  const name = button.textContent;
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  } catch {  // there is no camera, or it may not be used
    place.hidden = true;
    return;
  }
  const video = document.createElement("video");
  video.playsInline = true;
  video.muted = true;
  video.srcObject = stream;
  place.prepend(video);
  button.textContent = place.dataset.stop;
  const stopped = new AbortController();
  button.addEventListener("click", () => stopped.abort(), { once: true, signal: stopped.signal });
  let text = "";
  try {
    await video.play();
    text = await read(video, await makeDetector(place), stopped.signal);
  } catch {  // the library cannot be loaded
    place.hidden = true;
  }
  stopped.abort();
  for (const track of stream.getTracks()) track.stop();
  video.remove();
  button.textContent = name;
  if (!text) return;
  const field = document.getElementById(place.dataset.scans);
  field.value = text;
  field.form.requestSubmit();
}

async function makeDetector(place) {
  if ("BarcodeDetector" in window) {
    const known = await BarcodeDetector.getSupportedFormats();
    if (known.includes(FORMATS[0])) return new BarcodeDetector({ formats: FORMATS });
  }
  if (!window.BarcodeDetectionAPI) {
    const script = document.createElement("script");
    const loaded = new Promise((done, failed) => { script.onload = done; script.onerror = failed; });
    script.src = place.dataset.library;
    document.head.append(script);
    await loaded;
  }
  BarcodeDetectionAPI.prepareZXingModule({ overrides: { locateFile: () => place.dataset.wasm } });
  return new BarcodeDetectionAPI.BarcodeDetector({ formats: FORMATS });
}

async function read(video, detector, signal) {
  let failures = 0;
  while (!signal.aborted) {
    const [found] = await detector.detect(video).catch((error) => {
      failures += 1;
      if (failures > 20) throw error;  // not only the first pictures of a camera
      return [];
    });
    if (found?.rawValue) return found.rawValue;
    await new Promise((done) => { setTimeout(done, EVERY_MS); });
  }
  return "";
}

for (const place of document.querySelectorAll("[data-scans]")) {
  place.hidden = !navigator.mediaDevices;
  const [button] = place.querySelectorAll("button");
  button.addEventListener("click", () => { if (!place.querySelector("video")) scan(place); });
}
