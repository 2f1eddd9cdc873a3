/* A wallet by Credo, unmodified, which is told what to do over HTTP. Installed and started by
   credo.py, next to Credo's packages. Credo's package for Node.js has no release of this
   version, so what it would add is here: files, and messages that arrive over HTTP.

   Usage: node wallet.mjs PORT OPTIONS, with OPTIONS as JSON:
     agentPort           where messages arrive; without it nobody can reach the wallet
     ledger              the address of the public objects of a network
     isMediator          whether it forwards the messages of others
     mediatorInvitation  the link of its mediator */

import { EventEmitter } from "node:events";
import fs from "node:fs/promises";
import http from "node:http";
import os from "node:os";
import path from "node:path";
// Before Credo's own packages: they use it as soon as they are loaded.
import { askar } from "@openwallet-foundation/askar-nodejs";
import { anoncreds } from "@hyperledger/anoncreds-nodejs";
import { Agent, ConsoleLogger, LogLevel } from "@credo-ts/core";
import { AskarModule } from "@credo-ts/askar";
import {
  AnonCredsModule, DidCommCredentialV1Protocol, DidCommProofV1Protocol,
  LegacyIndyDidCommCredentialFormatService, LegacyIndyDidCommProofFormatService,
  getUnQualifiedDidIndyDid,
} from "@credo-ts/anoncreds";
import {
  DidCommCredentialV2Protocol, DidCommHttpOutboundTransport, DidCommMessageReceiver,
  DidCommModule, DidCommProofV2Protocol, DidCommTransportService,
} from "@credo-ts/didcomm";

const [port, options] = process.argv.slice(2).map((one) => JSON.parse(one));
const { agentPort, ledger, isMediator, mediatorInvitation } = options;

const textOf = async (request) => {
  let text = "";
  for await (const part of request) {
    text += part;
  }
  return text;
};

class Files {
  constructor() {
    const folder = path.join(os.tmpdir(), `credo-${process.pid}`);
    this.dataPath = this.cachePath = this.tempPath = folder;
  }

  exists = (name) => fs.access(name).then(() => true, () => false);
  createDirectory = (name) => fs.mkdir(path.dirname(name), { recursive: true });
  copyFile = (from, to) => fs.copyFile(from, to);
  read = (name) => fs.readFile(name, "utf8");
  delete = (name) => fs.rm(name, { recursive: true, force: true });

  async write(name, data) {
    await this.createDirectory(name);
    await fs.writeFile(name, data);
  }

  async downloadToFile(url, name) {
    const response = await fetch(url);
    await this.write(name, Buffer.from(await response.arrayBuffer()));
  }
}

/* The response to a call by which a message came may carry the answer. */
class Session {
  type = "http";

  constructor(response) {
    this.id = crypto.randomUUID();
    this.response = response;
  }

  async send(_, message) {
    if (this.response.writableEnded) {
      throw new Error("The response was sent already.");
    }
    this.response.setHeader("Content-Type", "application/didcomm-envelope-enc");
    this.response.end(JSON.stringify(message));
  }

  async close() {
    this.response.end();
  }
}

class HttpInboundTransport {
  async start(context) {
    const receiver = context.dependencyManager.resolve(DidCommMessageReceiver);
    const sessions = context.dependencyManager.resolve(DidCommTransportService);
    this.server = http.createServer(async (request, response) => {
      const session = new Session(response);
      response.once("close", () => sessions.removeSession(session));
      try {
        await receiver.receiveMessage(JSON.parse(await textOf(request)), { session });
      } catch (error) {
        console.error(error);
        response.statusCode = 500;
      }
      response.end();
    });
    this.server.listen(agentPort, "127.0.0.1");
  }

  async stop() {
    this.server.close();
  }
}

/* Credo stores credentials by qualified ids too, and makes them with this. */
const namespace = { didIndyNamespace: "agency" };

/* Reads what an Agency publishes on its own network. */
class Ledger {
  methodName = "agency";
  supportedIdentifier = /^(did:indy:agency:)?[1-9A-HJ-NP-Za-km-z]{21,22}(:|\/|$)/;
  allowsCaching = false;
  allowsLocalRecord = false;

  async read(kind, id, rest = "") {
    const plain = id.startsWith("did:indy:") ? getUnQualifiedDidIndyDid(id) : id;
    const published = encodeURIComponent(plain);
    const response = await fetch(`${ledger}/${kind}/${published}${rest}`);
    return response.json();
  }

  async getSchema(_, schemaId) {
    const schema = await this.read("schemas", schemaId);
    return { schemaId, schema, schemaMetadata: namespace, resolutionMetadata: {} };
  }

  async getCredentialDefinition(_, credentialDefinitionId) {
    const credentialDefinition = await this.read("credential-definitions", credentialDefinitionId);
    return {
      credentialDefinitionId, credentialDefinition,
      credentialDefinitionMetadata: namespace, resolutionMetadata: {},
    };
  }

  async getRevocationRegistryDefinition(_, revocationRegistryDefinitionId) {
    return {
      revocationRegistryDefinitionId,
      revocationRegistryDefinition: await this.read(
        "revocation-registries", revocationRegistryDefinitionId,
      ),
      revocationRegistryDefinitionMetadata: namespace, resolutionMetadata: {},
    };
  }

  async getRevocationStatusList(_, revocationRegistryId, timestamp) {
    const moment = `/status-list?timestamp=${timestamp}`;
    return {
      revocationStatusList: await this.read(
        "revocation-registries", revocationRegistryId, moment,
      ),
      revocationStatusListMetadata: {}, resolutionMetadata: {},
    };
  }
}

const indyCredentialFormat = new LegacyIndyDidCommCredentialFormatService();
const indyProofFormat = new LegacyIndyDidCommProofFormatService();
const agent = new Agent({
  config: { logger: new ConsoleLogger(LogLevel.warn), allowInsecureHttpUrls: true },
  dependencies: {
    FileSystem: Files, EventEmitterClass: EventEmitter, fetch, WebSocketClass: class {},
  },
  modules: {
    askar: new AskarModule({
      askar,
      store: {
        id: "credo",
        key: askar.storeGenerateRawKey({}),
        keyDerivationMethod: "raw",
        database: { type: "sqlite", config: { inMemory: true } },
      },
    }),
    anoncreds: new AnonCredsModule({ anoncreds, registries: [new Ledger()] }),
    didcomm: new DidCommModule({
      endpoints: agentPort ? [`http://127.0.0.1:${agentPort}`] : undefined,
      transports: {
        inbound: agentPort ? [new HttpInboundTransport()] : [],
        outbound: [new DidCommHttpOutboundTransport()],
      },
      connections: { autoAcceptConnections: true },
      credentials: {
        autoAcceptCredentials: "never",
        credentialProtocols: [
          new DidCommCredentialV1Protocol({ indyCredentialFormat }),
          new DidCommCredentialV2Protocol({ credentialFormats: [indyCredentialFormat] }),
        ],
      },
      proofs: {
        autoAcceptProofs: "never",
        proofProtocols: [
          new DidCommProofV1Protocol({ indyProofFormat }),
          new DidCommProofV2Protocol({ proofFormats: [indyProofFormat] }),
        ],
      },
      mediator: isMediator ? { autoAcceptMediationRequests: true } : false,
      mediationRecipient: mediatorInvitation
        ? {
            mediatorInvitationUrl: mediatorInvitation,
            mediatorPickupStrategy: "PickUpV1",
            mediatorPollingInterval: 300,
          }
        : false,
    }),
  },
});
const { connections, credentials, oob, proofs } = agent.didcomm;

const summary = ({ id, state, protocolVersion, threadId, revocationNotification }) => ({
  id, state, protocolVersion, threadId, isRevoked: Boolean(revocationNotification),
});

/* By the first word of the path: what is done with the rest of it and the body. */
const actions = {
  ready: async () => ({}),
  invite: async () => {
    const { outOfBandInvitation } = await oob.createInvitation({ multiUseInvitation: true });
    return { url: outOfBandInvitation.toUrl({ domain: `http://127.0.0.1:${agentPort}` }) };
  },
  accept: async (_, { url }) => {
    const { connectionRecord } = await oob.receiveInvitationFromUrl(url, { label: "Credo" });
    return { id: connectionRecord?.id };
  },
  connection: async (id) => {
    const { state, errorMessage } = await connections.getById(id);
    return { state, errorMessage };
  },
  ping: async (id) => {
    await connections.sendPing(id, { withReturnRouting: true });
    return {};
  },
  offers: async (connectionId) =>
    (await credentials.findAllByQuery(connectionId === "all" ? {} : { connectionId })).map(summary),
  take: async (id) =>
    summary(await credentials.acceptOffer({ credentialExchangeRecordId: id })),
  store: async (id) =>
    summary(await credentials.acceptCredential({ credentialExchangeRecordId: id })),
  credential: async (id) => summary(await credentials.getById(id)),
  decline: async (id) =>
    summary(await credentials.declineOffer({
      credentialExchangeRecordId: id,
      sendProblemReport: true,
      problemReportDescription: "No, thanks.",
    })),
  requests: async (connectionId) =>
    (await proofs.findAllByQuery(connectionId === "all" ? {} : { connectionId })).map(summary),
  prove: async (id, { evenRevoked }) => {
    const { proofFormats } = await proofs.selectCredentialsForRequest({
      proofExchangeRecordId: id,
      proofFormats: { indy: { filterByNonRevocationRequirements: !evenRevoked } },
    });
    return summary(await proofs.acceptRequest({ proofExchangeRecordId: id, proofFormats }));
  },
  refuse: async (id) =>
    summary(await proofs.declineRequest({
      proofExchangeRecordId: id,
      sendProblemReport: true,
      problemReportDescription: "No, thanks.",
    })),
  proof: async (id) => summary(await proofs.getById(id)),
};

const answer = async (request, response) => {
  const text = await textOf(request);
  const [, action, rest] = request.url.split("/");
  try {
    const found = await actions[action](rest, text ? JSON.parse(text) : {});
    response.end(JSON.stringify(found));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error.stack));
  }
};

agent.initialize().then(() => http.createServer(answer).listen(port, "127.0.0.1"));
