/** Result of one check of `fairlead doctor`. `todo` says what to do about a problem. */
export interface Finding {
  what: string;
  found: string;
  todo?: string;
}
