"use strict";

// Fills a field with the link in a code before the camera, and sends its form. Where the browser cannot read
// codes, there is no button. Nothing of the picture leaves the browser.
const EVERY_MS = 250;

async function scan(place) {
  const video = document.createElement("video");
  const [button] = place.querySelectorAll("button");
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  } catch {  // there is no camera, or it may not be used
    place.hidden = true;
    return;
  }
  button.hidden = true;
  video.playsInline = true;
  video.muted = true;
  video.srcObject = stream;
  place.append(video);
  await video.play();
  const text = await read(video, new BarcodeDetector({ formats: ["qr_code"] }));
  for (const track of stream.getTracks()) track.stop();
  video.remove();
  button.hidden = false;
  const field = document.getElementById(place.dataset.scans);
  field.value = text;
  field.form.requestSubmit();
}

async function read(video, detector) {
  for (;;) {
    const [found] = await detector.detect(video).catch(() => []);
    if (found?.rawValue) return found.rawValue;
    await new Promise((done) => { setTimeout(done, EVERY_MS); });
  }
}

for (const place of document.querySelectorAll("[data-scans]")) {
  place.hidden = !("BarcodeDetector" in window && navigator.mediaDevices);
  place.querySelector("button").addEventListener("click", () => scan(place));
}
