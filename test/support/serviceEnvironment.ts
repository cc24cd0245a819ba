/** Those that a sandbox knows by default. */
export const credentials = { clientId: 'sandbox', clientSecret: 'sandbox-secret' }

/** Where a service is, and who we are there. */
export function serviceEnvironment(url: string) {
  return {
    SERVICE_BASE_URL: url,
    SERVICE_AUTH_URL: url,
    SERVICE_CLIENT_ID: credentials.clientId,
    SERVICE_CLIENT_SECRET: credentials.clientSecret,
  }
}
