/** The stream, with a listener for what is written to it through this. */
export function heard<S extends NodeJS.WritableStream>(stream: S, onText: (text: string) => void): S {
  function write(...args: Parameters<S['write']>): boolean {
    onText(String(args[0]))
    return Reflect.apply(stream.write, stream, args)
  }
  return new Proxy(stream, {
    get(target, name) {
      if (name === 'write') return write
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
