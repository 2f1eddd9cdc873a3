/* What didwebvh-ts, on which Credo is built, says of logs: node judge.mjs FILE, with
   {name: log as text} as JSON. Prints {name: "valid", "deactivated" or why it is refused}. */

import crypto from "node:crypto";
import fs from "node:fs/promises";
import { resolveDIDFromLog } from "didwebvh-ts";

console.error = () => {}; // it writes there what it also throws
const verifier = {
  verify: async (signature, message, publicKey) => {
    const x = Buffer.from(publicKey).toString("base64url");
    const key = crypto.createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return crypto.verify(null, message, key, signature);
  },
};
const verdicts = {};
for (const [name, text] of Object.entries(JSON.parse(await fs.readFile(process.argv[2])))) {
  try {
    const log = text.trimEnd().split("\n").map((line) => JSON.parse(line));
    const { meta } = await resolveDIDFromLog(log, { verifier });
    verdicts[name] = meta.error ?? (meta.deactivated ? "deactivated" : "valid");
  } catch (error) {
    verdicts[name] = String(error.message);
  }
}
console.log(JSON.stringify(verdicts));
