// Three generations of the published clients behind the names and arguments of the latest.
import streetcred3102 from 'streetcred-3102';
import streetcred3476 from 'streetcred-3476';
import trinsic5018 from 'trinsic-5018';

// Earlier clients take a body as a member of their options, under these names.
const BODIES = {
  createConnection: 'connectionInvitationParameters',
  createCredential: 'credentialOfferParameters',
  createCredentialDefinition: 'credentialDefinitionFromSchemaParameters',
  createSchema: 'schemaParameters',
  createTenant: 'tenantParameters',
  createVerification: 'verificationParameters',
  createVerificationDefinition: 'proofRequest',
  createVerificationFromParameters: 'verificationPolicyParameters',
  createVerificationPolicy: 'verificationPolicyParameters',
  createWallet: 'walletParameters',
  createWebhook: 'webhookParameters',
  sendMessage: 'basicMessageParameters',
  sendVerificationFromParameters: 'verificationPolicyParameters',
  submitVerification: 'verificationPolicyCredentialParametersArray',
  updateTenant: 'tenantUpdateParameters',
};

const url = process.env.AGENCY_URL;

function aimed(Client, credentials) {
  const client = new Client(credentials, { noRetryPolicy: true });
  client.baseUri = url; // the constructor overwrites the option of this name
  return client;
}

/** The same client; operations with a body take it as their last argument. */
function modern(client) {
  const adapted = Object.create(client);
  for (const [operation, member] of Object.entries(BODIES)) {
    adapted[operation] = (...given) => client[operation](...given.slice(0, -1), { [member]: given.at(-1) });
  }
  return adapted;
}

function streetcred(library, { accessToken, subscriptionKey, providerKey }) {
  const { AgencyServiceClient, CustodianServiceClient, ManagementServiceClient, Credentials } = library;
  const login = new Credentials(accessToken, subscriptionKey);
  const agency = aimed(AgencyServiceClient, login);
  const custodian = aimed(CustodianServiceClient, login);
  return {
    original: { credentials: agency, wallet: custodian },
    credentials: Object.assign(modern(agency), {
      listVerifications: (options) => agency.listVerificationsForConnection(options),
    }),
    wallet: Object.assign(modern(custodian), {
      listConnections: (walletId) => custodian.getConnections(walletId),
      listInvitations: (walletId) => custodian.getInvitations(walletId),
    }),
    provider: ManagementServiceClient
      && modern(aimed(ManagementServiceClient, new Credentials(providerKey, subscriptionKey))),
  };
}

function trinsic(library, { accessToken, providerKey }) {
  const login = new library.Credentials(accessToken);
  return {
    credentials: aimed(library.CredentialsServiceClient, login),
    wallet: aimed(library.WalletServiceClient, login),
    provider: aimed(library.ProviderServiceClient, new library.ProviderCredentials(providerKey)),
  };
}

/** By version: keys of an organization -> its clients. */
export const GENERATIONS = {
  3102: (keys) => streetcred(streetcred3102, keys),
  3476: (keys) => streetcred(streetcred3476, keys),
  5018: (keys) => trinsic(trinsic5018, keys),
};
