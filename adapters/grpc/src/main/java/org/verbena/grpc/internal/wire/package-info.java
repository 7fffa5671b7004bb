/** The bytes of the native transport: frames and fields of metadata. It knows nothing of gRPC's classes. */
@org.jspecify.annotations.NullMarked
package org.verbena.grpc.internal.wire;
