/** Stands for the reader's program, which the example of docs/start/sandbox.md imports. */
export async function sendRecord(url, field2) {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: 'sandbox',
    client_secret: 'sandbox-secret',
  })
  const { access_token } = await (await fetch(`${url}/oauth/token`, { method: 'POST', body })).json()
  const headers = { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' }
  const record = JSON.stringify({ customerId: 'C1', data: { field1: 'value1', field2 } })
  await fetch(`${url}/api/v1/data`, { method: 'POST', headers, body: record })
}
