/**
 * Records by RDMA WRITE, without a message for each: {@link org.verbena.api.ring.RecordRing}. It stands on {@code
 * org.verbena.api} and on one-sided operations with immediate data.
 */
@NullMarked
package org.verbena.api.ring;

import org.jspecify.annotations.NullMarked;
