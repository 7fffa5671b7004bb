/**
 * Records by RDMA WRITE, without a message for each: {@link org.verbena.api.ring.RecordRing}. It uses {@code
 * org.verbena.api} and one-sided operations with immediate data.
 */
@NullMarked
package org.verbena.api.ring;

import org.jspecify.annotations.NullMarked;
