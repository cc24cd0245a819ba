/** The credentials that a sandbox accepts by default. */
export const credentials = { clientId: 'sandbox', clientSecret: 'sandbox-secret' }

/** Returns the variables for a service at this URL, with these credentials. */
export function serviceEnvironment(url: string) {
  return {
    SERVICE_BASE_URL: url,
    SERVICE_AUTH_URL: url,
    SERVICE_CLIENT_ID: credentials.clientId,
    SERVICE_CLIENT_SECRET: credentials.clientSecret,
  }
}
