/** Attributes, capabilities and events of devices and ports. */
package org.verbena.verbs.device;
