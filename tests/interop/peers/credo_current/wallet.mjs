/* A wallet by Credo, unmodified, which is told what to do over HTTP. Installed and started by
   credo.py, next to Credo's packages. Credo's package for Node.js has no release of this
   version, so what it would add is here: files, and messages that arrive over HTTP.

   Usage: node wallet.mjs PORT OPTIONS, with OPTIONS as JSON:
     agentPort           where messages arrive; without it nobody can reach the wallet
     ledger              the address of the public objects of a network
     leads               {host: port}: connections to these hosts go to a port of this machine.
                         Credo cannot read a did:webvh with a port, so tests have names without
     isMediator          whether it forwards the messages of others
     openidPort          where it issues and verifies by OpenID4VC; without it, it does not
     mediatorInvitation  the link of its mediator */

import { EventEmitter } from "node:events";
import fs from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import tls from "node:tls";
// Before Credo's own packages: they use it as soon as they are loaded.
import { askar } from "@openwallet-foundation/askar-nodejs";
import { anoncreds } from "@hyperledger/anoncreds-nodejs";
import {
  Agent, ConsoleLogger, DidResolverService, DidsModule, JwkDidRegistrar, JwkDidResolver, KeyDidRegistrar,
  KeyDidResolver, LogLevel, PeerDidRegistrar, PeerDidResolver, WebDidResolver,
} from "@credo-ts/core";
import { AskarModule } from "@credo-ts/askar";
import {
  AnonCredsDidCommCredentialFormatService, AnonCredsDidCommProofFormatService,
  AnonCredsModule, DidCommCredentialV1Protocol, DidCommProofV1Protocol,
  LegacyIndyDidCommCredentialFormatService, LegacyIndyDidCommProofFormatService,
  BasicTailsFileService, getUnQualifiedDidIndyDid,
} from "@credo-ts/anoncreds";
import {
  DidCommCredentialV2Protocol, DidCommHttpOutboundTransport, DidCommMessageReceiver,
  DidCommModule, DidCommProofV2Protocol, DidCommTransportService,
} from "@credo-ts/didcomm";
import {
  WebVhAnonCredsRegistry, WebVhDidRegistrar, WebVhDidResolver, WebVhModule,
} from "@credo-ts/webvh";
import { OpenId4VcModule } from "@credo-ts/openid4vc";
import { openidActions } from "./openid.mjs";
import { hostActions, openidOptions } from "./openid_host.mjs";

const [port, options] = process.argv.slice(2).map((one) => JSON.parse(one));
const { agentPort, ledger, isMediator, mediatorInvitation, openidPort, leads = {} } = options;

const led = (connect) => (target, ...rest) => {
  const host = target?.host ?? target?.hostname;
  const there = { host: "127.0.0.1", hostname: "127.0.0.1", port: leads[host], servername: host };
  return connect(host in leads ? { ...target, ...there } : target, ...rest);
};
tls.connect = led(tls.connect);
net.connect = led(net.connect);

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

/* Handles one call after the other. If a wallet asks a mediator again before it has its
   answer, Credo sends that in the response to the newer call, and then loses the messages
   that it took from the queue for the newer one. */
class HttpInboundTransport {
  async start(context) {
    const receiver = context.dependencyManager.resolve(DidCommMessageReceiver);
    const sessions = context.dependencyManager.resolve(DidCommTransportService);
    let previous = Promise.resolve();
    const handle = async (request, response) => {
      const session = new Session(response);
      try {
        await receiver.receiveMessage(JSON.parse(await textOf(request)), { session });
      } catch (error) {
        console.error(error);
        response.statusCode = 500;
      }
      sessions.removeSession(session);
      response.end();
    };
    this.server = http.createServer((request, response) => {
      previous = previous.then(() => handle(request, response));
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

/* What this Credo publishes on did:webvh, by path. Whoever has the host serves it. */
const pages = {};
const publish = (id, body) => {
  const [did, rest] = id.split("/resources/");
  const folder = did.split(":").slice(4).join("/");
  pages[`/${folder}/${rest ? `resources/${rest}` : "did.jsonl"}`] = body;
};
let published;

class Tails extends BasicTailsFileService {
  async uploadTailsFile(_, { revocationRegistryDefinition: { value } }) {
    pages[`/tails/${value.tailsHash}`] = (await fs.readFile(value.tailsLocation)).toString("base64");
    return { tailsFileUrl: `https://${published.host}/tails/${value.tailsHash}` };
  }
}

const webvh = new WebVhAnonCredsRegistry();
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
    anoncreds: new AnonCredsModule({
      anoncreds, registries: [new Ledger(), webvh], tailsFileService: new Tails(),
    }),
    dids: new DidsModule({
      resolvers: [
        new JwkDidResolver(), new KeyDidResolver(), new PeerDidResolver(),
        new WebDidResolver(), new WebVhDidResolver(),
      ],
      registrars: [
        new JwkDidRegistrar(), new KeyDidRegistrar(), new PeerDidRegistrar(),
        new WebVhDidRegistrar(),
      ],
    }),
    webvh: new WebVhModule(),
    openid4vc: new OpenId4VcModule(openidOptions(openidPort)),
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
          new DidCommCredentialV2Protocol({
            credentialFormats: [
              indyCredentialFormat, new AnonCredsDidCommCredentialFormatService(),
            ],
          }),
        ],
      },
      proofs: {
        autoAcceptProofs: "never",
        proofProtocols: [
          new DidCommProofV1Protocol({ indyProofFormat }),
          new DidCommProofV2Protocol({
            proofFormats: [indyProofFormat, new AnonCredsDidCommProofFormatService()],
          }),
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

/* Publishes the newest list, then the registry that links it. */
const publishList = async (result) => {
  const { attestedResource } = result.registrationMetadata;
  const { timestamp } = result.revocationStatusListState.revocationStatusList;
  publish(attestedResource.id, attestedResource);
  const link = { id: attestedResource.id, type: "anonCredsStatusList", timestamp };
  const links = [...(published.registry.links ?? []), link];
  const changed = await webvh.updateRevocationRegistryDefinition(
    agent.context, published.registry, { links },
  );
  published.registry = changed.registrationMetadata;
  publish(published.registry.id, published.registry);
  return { id: attestedResource.id, timestamp };
};

/* By the first word of the path: what is done with the rest of it and the body. */
const actions = {
  ready: async () => ({}),
  invite: async () => {
    const { id, outOfBandInvitation } = await oob.createInvitation({ multiUseInvitation: true });
    return { id, url: outOfBandInvitation.toUrl({ domain: `http://127.0.0.1:${agentPort}` }) };
  },
  accept: async (_, { url }) => {
    const { connectionRecord } = await oob.receiveInvitationFromUrl(url, { label: "Credo" });
    return { id: connectionRecord?.id };
  },
  connection: async (id) => {
    const { state, errorMessage } = await connections.getById(id);
    return { state, errorMessage };
  },
  invited: async (outOfBandId) => {
    const [found] = await connections.findAllByOutOfBandId(outOfBandId);
    return { id: found?.state === "completed" ? found.id : null };
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
  prove: async (id, { evenRevoked, format = "indy" }) => {
    const { proofFormats } = await proofs.selectCredentialsForRequest({
      proofExchangeRecordId: id,
      proofFormats: { [format]: { filterByNonRevocationRequirements: !evenRevoked } },
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
  forget: async (did) => {
    const resolver = agent.dependencyManager.resolve(DidResolverService);
    await resolver.invalidateCacheForDid(agent.context, did);
    return {};
  },
  publish: async (host, { name, attributes }) => {
    published = { host };
    const { didState } = await agent.dids.create({
      method: "webvh", domain: host, path: `credo/${name.toLowerCase()}`,
    });
    const issuerId = didState.did;
    const [record] = await agent.dids.getCreatedDids({ did: issuerId });
    const lines = record.metadata.get("log").map((entry) => `${JSON.stringify(entry)}\n`);
    publish(issuerId, lines.join(""));
    const api = agent.modules.anoncreds;
    const schema = await api.registerSchema({
      schema: { issuerId, name, version: "1.0", attrNames: attributes }, options: {},
    });
    publish(schema.schemaState.schemaId, schema.registrationMetadata.attestedResource);
    const { schemaId } = schema.schemaState;
    const made = await api.registerCredentialDefinition({
      credentialDefinition: { issuerId, schemaId, tag: "default" },
      options: { supportRevocation: true },
    });
    const { credentialDefinitionId } = made.credentialDefinitionState;
    publish(credentialDefinitionId, made.registrationMetadata.attestedResource);
    const registry = await api.registerRevocationRegistryDefinition({
      revocationRegistryDefinition: {
        issuerId, credentialDefinitionId, tag: "0", maximumCredentialNumber: 8,
      },
      options: {},
    });
    const { revocationRegistryDefinitionId } = registry.revocationRegistryDefinitionState;
    published.registry = registry.registrationMetadata.attestedResource;
    publish(revocationRegistryDefinitionId, published.registry);
    await publishList(await api.registerRevocationStatusList({
      revocationStatusList: { issuerId, revocationRegistryDefinitionId }, options: {},
    }));
    return { did: issuerId, definitionId: credentialDefinitionId, pages };
  },
  pages: async () => pages,
  offer: async (connectionId, { definitionId, values, index }) =>
    summary(await credentials.offerCredential({
      connectionId,
      protocolVersion: "v2",
      credentialFormats: {
        anoncreds: {
          credentialDefinitionId: definitionId,
          revocationRegistryDefinitionId: published.registry.id,
          revocationRegistryIndex: index,
          attributes: Object.entries(values).map(([name, value]) => ({ name, value })),
        },
      },
    })),
  issue: async (id) =>
    summary(await credentials.acceptRequest({ credentialExchangeRecordId: id })),
  revoke: async (index) =>
    publishList(await agent.modules.anoncreds.updateRevocationStatusList({
      revocationStatusList: {
        revocationRegistryDefinitionId: published.registry.id,
        revokedCredentialIndexes: [Number(index)],
      },
      options: {},
    })),
  ...openidActions(agent),
  ...hostActions(agent, openidPort),
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
