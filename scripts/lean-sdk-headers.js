/** What the model library asks of headers, which it makes of plain objects with names in lower case. */
export class Headers extends Map {
  constructor(headers = {}) {
    super(Symbol.iterator in headers ? headers : Object.entries(headers));
  }

  get(name) {
    return super.get(name.toLowerCase()) ?? null;
  }
}
