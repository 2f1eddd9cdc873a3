"use strict";
/* A wallet by Credo, unmodified, which is told what to do over HTTP. Installed and started by
   credo.py, next to Credo's packages. Usage: node wallet.cjs PORT '{"agentPort": PORT}' */

const http = require("node:http");
const {
  Agent, AutoAcceptCredential, ConnectionsModule, ConsoleLogger, CredentialsModule,
  HttpOutboundTransport, KeyDerivationMethod, LogLevel,
} = require("@credo-ts/core");
const { agentDependencies, HttpInboundTransport } = require("@credo-ts/node");
const { AskarModule } = require("@credo-ts/askar");
const {
  AnonCredsModule, LegacyIndyCredentialFormatService, V1CredentialProtocol,
} = require("@credo-ts/anoncreds");
const { anoncreds } = require("@hyperledger/anoncreds-nodejs");
const { ariesAskar } = require("@hyperledger/aries-askar-nodejs");

const [port, { agentPort }] = process.argv.slice(2).map((one) => JSON.parse(one));
const never = AutoAcceptCredential.Never;
const indyCredentialFormat = new LegacyIndyCredentialFormatService();
const agent = new Agent({
  config: {
    label: "Credo",
    walletConfig: {
      id: "credo",
      key: ariesAskar.storeGenerateRawKey({}),
      keyDerivationMethod: KeyDerivationMethod.Raw,
      storage: { type: "sqlite", config: { inMemory: true } },
    },
    endpoints: [`http://127.0.0.1:${agentPort}`],
    logger: new ConsoleLogger(LogLevel.warn),
  },
  dependencies: agentDependencies,
  modules: {
    askar: new AskarModule({ ariesAskar }),
    anoncreds: new AnonCredsModule({ anoncreds, registries: [] }),
    connections: new ConnectionsModule({ autoAcceptConnections: true }),
    credentials: new CredentialsModule({
      autoAcceptCredentials: never,
      credentialProtocols: [new V1CredentialProtocol({ indyCredentialFormat })],
    }),
  },
});
agent.registerInboundTransport(new HttpInboundTransport({ port: agentPort }));
agent.registerOutboundTransport(new HttpOutboundTransport());

/* By the first word of the path: what is done with the rest of it and the body. */
const actions = {
  accept: async (_, { url }) => {
    const { connectionRecord } = await agent.oob.receiveInvitationFromUrl(url);
    return { id: connectionRecord.id };
  },
  connection: async (id) => {
    const { state, errorMessage } = await agent.connections.getById(id);
    return { state, errorMessage };
  },
  offers: async (connectionId) => {
    const found = await agent.credentials.findAllByQuery({ connectionId });
    return found.map(({ id, state, protocolVersion }) => ({ id, state, protocolVersion }));
  },
  decline: async (id) => {
    const options = { sendProblemReport: true, problemReportDescription: "No, thanks." };
    const { state } = await agent.credentials.declineOffer(id, options);
    return { state };
  },
};

const answer = async (request, response) => {
  let text = "";
  for await (const part of request) {
    text += part;
  }
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
