/** Targets of Verbena's scheme, for gRPC's channels. Not API. */
@org.jspecify.annotations.NullMarked
package org.verbena.grpc.internal.resolver;
