/**
 * The native transport under grpc-java's stubs. It extends classes of {@code io.grpc.internal}, which no other package
 * uses.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.grpc.internal.nativetransport;
