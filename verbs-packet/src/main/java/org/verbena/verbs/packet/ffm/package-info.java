/** C's structs and functions of raw packets. */
package org.verbena.verbs.packet.ffm;
