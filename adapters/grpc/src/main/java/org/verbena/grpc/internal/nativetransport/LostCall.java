package org.verbena.grpc.internal.nativetransport;

import io.grpc.Status;
import io.grpc.internal.ClientStreamListener.RpcProgress;

/**
 * Why a call ends without its trailers.
 *
 * @param status of the call
 * @param progress how far it can have come, by which gRPC decides whether to make it again
 */
record LostCall(Status status, RpcProgress progress) {}
