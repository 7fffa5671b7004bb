/**
 * The native transport under grpc-java's stubs. It extends classes of {@code io.grpc.internal}, of which only the
 * builders outside use any.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.grpc.internal.nativetransport;
