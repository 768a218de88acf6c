/** Result of one check of `fairlead doctor`. `todo` says what to do about a problem, `note` what to know about it. */
export interface Finding {
  what: string;
  found: string;
  todo?: string;
  note?: string;
}
