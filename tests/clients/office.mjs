// An organization and the wallets it hosts, as one of the published clients sees them.
import { GENERATIONS } from './clients.mjs';

const ORGANIZATIONS = JSON.parse(process.env.AGENCY_ORGANIZATIONS);
export const VALUES = { name: 'Rex', year: '2019' };
export const CHECK = {
  name: 'Licence check',
  version: '1.0',
  attributes: [{ policyName: 'Name', attributeNames: ['name'] }],
  predicates: [
    { policyName: 'Old enough', attributeName: 'year', predicateType: '<=', predicateValue: 2020 },
  ],
};
export const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export class Office {
  constructor(version, keys = ORGANIZATIONS[version]) {
    Object.assign(this, GENERATIONS[version](keys), { keys });
    // The client of April 2020 shares offers and requests, but takes none: the next one does.
    this.taker = version === '3102' ? GENERATIONS[3476](keys).wallet : this.wallet;
  }

  /** A definition of its own, for `offer`. */
  async define() {
    const licence = { name: 'Dog licence', version: '1.0', attributes: Object.keys(VALUES) };
    this.definition = await this.credentials.createCredentialDefinition({ ...licence, supportRevocation: true });
  }

  offer(more) {
    const { definitionId } = this.definition;
    return this.credentials.createCredential({ definitionId, credentialValues: VALUES, ...more });
  }

  async host() {
    return (await this.wallet.createWallet({ ownerName: 'Rex' })).walletId;
  }

  /** A new wallet on a new connection; `mine` is the wallet's side of it. */
  async meet() {
    const walletId = await this.host();
    const { connectionId, invitation } = await this.credentials.createConnection({ name: 'Rex' });
    return { walletId, connectionId, mine: await this.wallet.acceptInvitation(walletId, invitation) };
  }

  /** A hosted wallet says what it would like; no client has an operation for that. */
  async propose(walletId, connectionId) {
    const path = `${process.env.AGENCY_URL}/api/${walletId}/credentials/propose/${connectionId}`;
    const headers = { Authorization: `bearer ${this.keys.accessToken}`, 'Content-Type': 'application/json' };
    headers['X-Streetcred-Subscription-Key'] = this.keys.subscriptionKey;
    const body = JSON.stringify({ schemaName: 'Licence', credentialValues: VALUES });
    return (await fetch(path, { method: 'PUT', headers, body })).json();
  }

  /** A wallet with a credential, issued automatically; `held` is the wallet's id of it. */
  async hold(credentialValues = VALUES) {
    const met = await this.meet();
    const { connectionId, walletId } = met;
    const { credentialId } = await this.offer({ connectionId, credentialValues, automaticIssuance: true });
    const [{ credentialId: held }] = await this.wallet.listCredentials(walletId);
    await this.wallet.acceptCredentialOffer(walletId, held);
    return { ...met, credentialId, held };
  }

  /** The verifier's record after the wallet has answered by itself. */
  async verify({ walletId, connectionId }, policy = CHECK) {
    const asked = await this.credentials.sendVerificationFromParameters(connectionId, policy);
    const [seen] = await this.wallet.listVerifications(walletId);
    await this.wallet.submitVerificationAutoSelect(walletId, seen.verificationId);
    return this.credentials.getVerification(asked.verificationId);
  }
}
