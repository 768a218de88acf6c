// Stands for the model library's own provider, which it would ask where a model is only named: no model is here.
const neverThrown = { isInstance: () => false };

export const GatewayError = neverThrown;
export const GatewayAuthenticationError = neverThrown;
export const gateway = undefined;
export const createGateway = undefined;
